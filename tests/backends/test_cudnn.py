"""Settings that can be made and read."""

import flambeau as torch


def test_flags_end_with_their_context():
    cudnn = torch.backends.cudnn
    before = cudnn.benchmark
    with cudnn.flags(benchmark=not before):
        assert cudnn.benchmark is not before
    assert cudnn.benchmark is before
    assert not cudnn.is_available()
    assert cudnn.version() is None


def test_questions_are_answered_for_this_machine():
    assert not torch.backends.mps.is_available()
    assert not torch.backends.cuda.is_built()
    assert torch.backends.cpu.get_cpu_capability() in ("AVX512", "AVX2", "DEFAULT")
