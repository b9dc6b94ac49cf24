"""The command line itself."""

import pytest

from flambeau.cli import main


def test_everything_behind_the_script_goes_to_it():
    options = main.parser().parse_args(["run", "script.py", "--seed", "3", "--", "-h"])
    assert (options.script, options.arguments) == ("script.py", ["--seed", "3", "--", "-h"])


def test_version(capsys):
    with pytest.raises(SystemExit) as stopped:
        main.main(["--version"])
    assert stopped.value.code == 0
    assert capsys.readouterr().out == "flambeau 2.13.0+flambeau.0.1\n"


def test_no_command_is_an_error(capsys):
    with pytest.raises(SystemExit) as stopped:
        main.main([])
    assert stopped.value.code == 2
    assert "COMMAND" in capsys.readouterr().err


def test_only_the_script_is_required(capsys):
    with pytest.raises(SystemExit):
        main.main(["run"])
    assert capsys.readouterr().err.endswith("the following arguments are required: SCRIPT\n")
    assert main.parser().parse_args(["run", "script.py"]).arguments == []
