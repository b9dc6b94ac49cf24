"""What record_distributions.py asks torch and tests/distributions ask flambeau: one table.

Keeps     a case is (name, arguments), written as Python text; `answers` asks the same of either.
Touches   nothing.
Not here  torch (record_distributions.py), comparing (tests/distributions)."""

import warnings

CASES = {
    "Normal": ["t.tensor([0.0, 1.0, -2.0]), t.tensor([1.0, 0.5, 2.0])", "0.0, 2.0"],
    "LogNormal": ["t.tensor([0.0, 1.0]), t.tensor([1.0, 0.5])"],
    "HalfNormal": ["t.tensor([1.0, 0.5])"],
    "LogisticNormal": ["t.tensor([0.0, 1.0]), t.tensor([1.0, 0.5])"],
    "Uniform": ["t.tensor([0.0, 1.0]), t.tensor([1.0, 2.5])", "-1, 1", "2.0, 1.0"],
    "Laplace": ["t.tensor([0.0, 1.0]), t.tensor([1.0, 2.5])"],
    "Cauchy": ["t.tensor([0.0, 1.0]), t.tensor([1.0, 2.5])"],
    "HalfCauchy": ["t.tensor([1.0, 2.5])"],
    "Gumbel": ["t.tensor([0.0, 1.0]), t.tensor([1.0, 2.5])", "0.5, 2.0"],
    "StudentT": ["t.tensor([3.0, 5.0]), t.tensor([0.0, 1.0]), t.tensor([1.0, 2.5])"],
    "Weibull": ["t.tensor([1.0, 2.5]), t.tensor([1.5, 2.5])"],
    "Pareto": ["t.tensor([1.0, 2.5]), t.tensor([2.5, 3.5])"],
    "Kumaraswamy": ["t.tensor([1.0, 2.5]), t.tensor([2.5, 3.5])"],
    "Gamma": [
        "t.tensor([0.5, 2.5, 20.0]), t.tensor([2.5, 3.5, 1.0])", "t.tensor([1.0, -1.0]), 1.0",
    ],
    "Chi2": ["t.tensor([0.5, 2.5, 20.0])"],
    "Exponential": ["t.tensor([0.5, 2.5, 20.0])"],
    "Dirichlet": ["t.tensor([[0.5, 2.5, 20.0], [1.0, 2.0, 3.0]])"],
    "Beta": ["t.tensor([0.5, 2.5]), t.tensor([2.5, 3.5])"],
    "InverseGamma": ["t.tensor([2.5, 3.5]), t.tensor([2.5, 3.5])"],
    "FisherSnedecor": ["t.tensor([2.5, 3.5]), t.tensor([5.5, 6.5])"],
    "Bernoulli": ["t.tensor([0.5, 0.2])", "None, t.tensor([0.5, -2.0])", "0.3", "1.5", ""],
    "ContinuousBernoulli": [
        "t.tensor([0.5, 0.2, 0.4995, 0.9])", "None, t.tensor([0.5, -2.0, 0.001])", "0.3",
        "t.tensor([0.4, 0.6]), None, (0.3, 0.7)", "1.5", "1.5, None, (0.4, 0.6), True", "",
    ],
    "Categorical": [
        "t.tensor([[0.5, 0.2, 0.3], [1.0, 2.0, 3.0]])", "None, t.tensor([0.5, -2.0])",
        "t.tensor([-1.0, 2.0])", "t.tensor(1.0)",
    ],
    "OneHotCategorical": ["t.tensor([[0.5, 0.2, 0.3], [1.0, 2.0, 3.0]])"],
    "OneHotCategoricalStraightThrough": ["t.tensor([[0.5, 0.2, 0.3], [1.0, 2.0, 3.0]])"],
    "Multinomial": ["10, t.tensor([[0.5, 0.2, 0.3], [1.0, 2.0, 3.0]])"],
    "Binomial": [
        "10, t.tensor([0.5, 0.2, 0.9])", "t.tensor([3.0, 5.0]), None, t.tensor([0.1, -1.0])",
    ],
    "Geometric": ["t.tensor([0.5, 0.2, 0.9])"],
    "NegativeBinomial": ["t.tensor([3.0, 5.0, 2.0]), t.tensor([0.5, 0.2, 0.9])"],
    "Poisson": ["t.tensor([3.0, 5.0, 20.0])"],
    "MultivariateNormal": [
        "t.tensor([0.0, 1.0]), t.tensor([[2.0, 0.5], [0.5, 1.0]])",
        "t.zeros(3, 2), None, None, t.tensor([[2.0, 0.0], [0.5, 1.0]])",
        "t.zeros(2), None, t.tensor([[2.0, 0.5], [0.5, 1.0]])",
        "t.zeros(2), t.tensor([[1.0, 2.0], [2.0, 1.0]])",
    ],
    "LowRankMultivariateNormal": [
        "t.zeros(3), t.tensor([[1.0, 0.5], [0.0, 1.0], [0.3, 0.2]]), t.tensor([1.0, 0.5, 2.0])",
        "t.tensor([[0.0, 1.0], [2.0, 3.0]]), t.tensor([[1.0], [0.5]]), t.tensor([1.0, 0.5])",
        "t.zeros(3), t.ones(2, 1), t.ones(3)", "t.zeros(3), t.ones(3, 1), t.ones(2)",
        "t.zeros(2), t.ones(2, 1), t.tensor([1.0, -1.0])",
    ],
    "LKJCholesky": ["3, 1.0", "4, t.tensor([0.5, 2.0])", "1", "2, -1.0"],
    "RelaxedBernoulli": ["t.tensor(0.7), t.tensor([0.5, 0.2])"],
    "VonMises": [
        "t.tensor([0.0, 1.0, -3.0]), t.tensor([1.0, 0.1, 30.0])", "0.5, 2.0",
        "t.tensor(1.0), t.tensor(-1.0)",
    ],
    "Wishart": [
        "t.tensor(4.0), t.tensor([[2.0, 0.5], [0.5, 1.0]])",
        "t.tensor([3.5, 6.0]), None, t.tensor([[2.0, 0.5], [0.5, 1.0]])",
        "5.0, None, None, t.tensor([[[2.0, 0.0], [0.5, 1.0]], [[1.0, 0.0], [-0.5, 3.0]]])",
        "t.tensor(1.0), t.eye(2)", "3.0", "t.tensor(3.0), t.ones(2)",
    ],
    "GeneralizedPareto": [
        "t.tensor([0.0, 1.0, -3.0]), t.tensor([1.0, 0.5, 2.0]), t.tensor([0.3, 0.0, -0.5])",
        "0.5, 2.0, 0.7", "t.tensor(1.0), t.tensor(-1.0), t.tensor(1.0)",
    ],
    "RelaxedOneHotCategorical": ["t.tensor(0.7), t.tensor([0.5, 0.2, 0.3])"],
}  # fmt: skip
ATTRIBUTES = (
    "mean", "variance", "mode", "support", "batch_shape", "event_shape", "has_rsample", "probs",
    "logits",
)  # fmt: skip


def plain(value):
    """A result as JSON holds it."""
    if hasattr(value, "detach"):
        return {"shape": list(value.shape), "values": value.detach().reshape(-1).tolist()}
    return str(value).split("\n")[0]


def attempt(function):
    """The result, or the class and first line of the error."""
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            return plain(function())
    except Exception as error:
        first = (str(error).split("\n") or [""])[0]
        return f"{type(error).__name__}: {first}".split("<class")[0]


def gradient(t, name, text, value):
    """Gradient of the summed log probability with respect to the parameters."""
    given = eval(f"({text},)", {"t": t})
    given = [x.clone().requires_grad_() if hasattr(x, "requires_grad") else x for x in given]
    made = getattr(t.distributions, name)(*given, validate_args=False)
    made.log_prob(value).sum().backward()
    found = [x.grad.reshape(-1) for x in given if getattr(x, "grad", None) is not None]
    return t.cat(found) if found else t.zeros(0)


def answers(t, name, text):
    """Everything asked of one distribution."""
    arguments = f"({text},)" if text else "()"

    def make():
        return getattr(t.distributions, name)(*eval(arguments, {"t": t}))

    found = {"made": attempt(make)}
    try:
        made = make()
    except Exception:
        return found
    for attribute in ATTRIBUTES:
        if attribute in ("probs", "logits") and not hasattr(made, attribute):
            continue
        found[attribute] = attempt(lambda wanted=attribute: getattr(made, wanted))
    for method, shape in (("sample", ()), ("sample", (5, 3)), ("rsample", (4,))):
        t.manual_seed(3)
        found[f"{method}{shape}"] = attempt(lambda m=method, s=shape: getattr(made, m)(s))
    t.manual_seed(5)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        value = made.sample((4,))
    wide = (2, *made.batch_shape)
    found["entropy"] = attempt(made.entropy)
    found["log_prob"] = attempt(lambda: made.log_prob(value))
    found["outside"] = attempt(lambda: made.log_prob(value - 100.5))
    if name not in ("Gamma", "Chi2", "InverseGamma"):
        found["cdf"] = attempt(lambda: made.cdf(value))
        found["icdf"] = attempt(lambda: made.icdf(t.full_like(value, 0.3)))
    found["expand"] = attempt(lambda: made.expand(wide))
    found["expanded"] = attempt(lambda: made.expand(wide).log_prob(value[:1]))
    found["enumerated"] = attempt(made.enumerate_support) if made.has_enumerate_support else ""
    found["divergence"] = attempt(lambda: t.distributions.kl_divergence(made, made))
    found["gradient"] = attempt(lambda: gradient(t, name, text, value))
    return found
