"""The workloads: each written once against torch's API, run under whatever module offers it.

Keeps     WORKLOADS maps a name to build(torch), which prepares and returns step(); a step ends with
          its result in memory (a NumPy array or a Python number), so nothing lazy is left undone.
Touches   only the module it is given.
Not here  timing (serve.py), the models (models.py)."""

from models import CharGPT, ConvNet, SequenceReader, mlp


def chain_small(torch):
    """200 dependent additions of 4 floats."""
    start, step_size = torch.ones(4), torch.full((4,), 1e-3)

    def step():
        total = start
        for _ in range(200):
            total = total + step_size
        return total.numpy()

    return step


def gradient_of(tensor):
    """The gradient as an array, taken off the tensor so that the next step starts anew."""
    gradient, tensor.grad = tensor.grad, None
    return gradient.numpy()


def chain_small_grad(torch):
    """100 dependent products of 4 floats and the gradient through them."""
    start = torch.ones(4, requires_grad=True)
    factor = torch.full((4,), 1.001)

    def step():
        product = start
        for _ in range(100):
            product = product * factor
        product.sum().backward()
        return gradient_of(start)

    return step


def linreg(torch):
    """One epoch of a linear regression by hand, its loss read with item()."""
    torch.manual_seed(42)
    x = torch.linspace(0, 5, 50)
    y = 3 * x + 1 + 0.5 * torch.randn(50)
    slope = torch.tensor([0.0], requires_grad=True)
    offset = torch.tensor([0.0], requires_grad=True)

    def step():
        loss = ((slope * x + offset - y) ** 2).mean()
        loss.backward()
        with torch.no_grad():
            for parameter in (slope, offset):
                parameter.sub_(0.01 * parameter.grad)
        for parameter in (slope, offset):
            parameter.grad.zero_()
        return loss.item()

    return step


def ode(torch):
    """50 steps of a small simulation with indexing and stack, and the gradient through all."""
    rates = torch.tensor([1.0, 0.1, 0.2], requires_grad=True)
    start = torch.tensor([1.0, 0.5])

    def step():
        state = start
        for _ in range(50):
            prey, hunters = state[0], state[1]
            met = prey * hunters
            change = [rates[0] * prey - rates[1] * met, rates[2] * met - hunters]
            state = state + 0.01 * torch.stack(change)
        state.sum().backward()
        return gradient_of(rates)

    return step


def loop_write(torch):
    """100 dependent writes of rows."""

    def step():
        x = torch.zeros(100, 8)
        for k in range(100):
            x[k] = x[k - 1] * 0.5 + k
        return x.numpy()

    return step


def scalars(torch):
    """What a plain Python loop over a tensor does: slices, views, single elements."""
    x = torch.arange(64.0).reshape(8, 8)

    def step():
        total = 0.0
        for i in range(8):
            row = x[i]
            for j in range(8):
                total += row[j].item()
            total += x[i:, 1:3].shape[0] + x.view(-1)[i].item() + len(x[:, i])
        return total

    return step


def add_10M(torch):
    left, right = torch.randn(10_000_000), torch.randn(10_000_000)
    return lambda: (left + right).numpy()


def gelu_10M(torch):
    """GELU written out: nine operators over 10 million floats."""
    x = torch.randn(10_000_000)

    def step():
        return (0.5 * x * (1 + torch.tanh(0.79788456 * (x + 0.044715 * x * x * x)))).numpy()

    return step


def softmax(torch):
    x = torch.randn(4096, 1024)
    return lambda: torch.softmax(x, -1).numpy()


def layernorm(torch):
    x, weight, bias = torch.randn(4096, 1024), torch.ones(1024), torch.zeros(1024)
    return lambda: torch.nn.functional.layer_norm(x, (1024,), weight, bias).numpy()


def layernorm_by_hand(torch):
    x = torch.randn(4096, 1024)

    def step():
        mean = x.mean(-1, keepdim=True)
        variance = ((x - mean) ** 2).mean(-1, keepdim=True)
        return ((x - mean) / torch.sqrt(variance + 1e-5)).numpy()

    return step


def reductions(torch):
    """Six reductions of one matrix."""
    x = torch.randn(2048, 2048)

    def step():
        results = (x.sum(0), x.sum(1), x.mean(), x.amax(0), x.var(1), x.argmax(1))
        return [result.numpy() for result in results]

    return step


def product(*shape_left_right):
    """Build the product of two random operands of these shapes."""
    left_shape, right_shape = shape_left_right

    def build(torch):
        left, right = torch.randn(*left_shape), torch.randn(*right_shape)
        return lambda: (left @ right).numpy()

    return build


def sdpa(torch):
    """Causal attention, 8 x 8 heads of 256 x 64."""
    query, key, value = (torch.randn(8, 8, 256, 64) for _ in range(3))
    attention = torch.nn.functional.scaled_dot_product_attention
    return lambda: attention(query, key, value, is_causal=True).numpy()


def training(torch, model, optimizer, inputs, targets):
    """A training step of a classifier; returns its loss."""

    def step():
        optimizer.zero_grad()
        scores = model(inputs)
        scores = scores.reshape(-1, scores.shape[-1])
        loss = torch.nn.functional.cross_entropy(scores, targets.reshape(-1))
        loss.backward()
        optimizer.step()
        return loss.item()

    return step


def mlp_tiny(torch):
    model = mlp(torch, [2, 16, 16, 2], torch.nn.Tanh)
    optimizer = torch.optim.SGD(model.parameters(), 0.1)
    return training(torch, model, optimizer, torch.randn(100, 2), torch.randint(0, 2, (100,)))


def mlp_step(torch):
    model = mlp(torch, [784, 512, 512, 10], torch.nn.ReLU)
    optimizer = torch.optim.Adam(model.parameters(), 1e-3)
    return training(torch, model, optimizer, torch.randn(128, 784), torch.randint(0, 10, (128,)))


def cnn(torch):
    model = ConvNet(torch)
    optimizer = torch.optim.SGD(model.parameters(), 0.05, momentum=0.9)
    images, labels = torch.randn(32, 3, 32, 32), torch.randint(0, 10, (32,))
    return training(torch, model, optimizer, images, labels)


def lstm(torch):
    model = SequenceReader(torch)
    optimizer = torch.optim.Adam(model.parameters(), 1e-3)
    return training(torch, model, optimizer, torch.randn(32, 50, 64), torch.randint(0, 10, (32,)))


def gpt(torch):
    model = CharGPT(torch)
    optimizer = torch.optim.AdamW(model.parameters(), 3e-4)
    tokens, following = torch.randint(0, 96, (8, 128)), torch.randint(0, 96, (8, 128))
    return training(torch, model, optimizer, tokens, following)


def grow(torch, model, tokens, n_tokens):
    """Append the likeliest next token, n_tokens times."""
    with torch.no_grad():
        for _ in range(n_tokens):
            likeliest = model(tokens)[:, -1].argmax(-1, keepdim=True)
            tokens = torch.cat([tokens, likeliest], 1)
    return tokens


def generate(torch):
    """16 tokens one by one, the sequence growing."""
    model = CharGPT(torch, context=64)
    start = torch.randint(0, 96, (1, 1))
    return lambda: grow(torch, model, start, 16).numpy()


def generate_fresh(torch):
    """Eight prompts of shapes not seen before: nothing can have been planned ahead."""
    model = CharGPT(torch, context=64)
    n_prompts = 0

    def step():
        nonlocal n_prompts
        for _ in range(8):
            shape = 1 + n_prompts * 7 % 16, 1 + n_prompts * 17 % 41
            n_prompts += 1
            tokens = grow(torch, model, torch.zeros(*shape, dtype=torch.int64), 4)
        return tokens.numpy()

    return step


def embedding(torch):
    """Rows of a table, squared and summed, and the table's gradient."""
    table = torch.randn(20000, 128, requires_grad=True)
    index = torch.randint(0, 20000, (64, 128))

    def step():
        (torch.nn.functional.embedding(index, table) ** 2).sum().backward()
        return gradient_of(table)

    return step


def indexing(torch):
    """A mask, rows by number, and a gather."""
    x = torch.randn(1000, 1000)
    index = torch.randint(0, 1000, (1000,))

    def step():
        gathered = x.gather(1, index.expand(1000, 1000))
        return (x[x > 0].sum() + x[index].sum() + gathered.sum()).item()

    return step


def sort(torch):
    x = torch.randn(1_000_000)

    def step():
        results = torch.sort(x).values, torch.topk(x, 100).values, torch.cumsum(x, 0)
        return [result.numpy() for result in results]

    return step


def hvp(torch):
    """A Hessian-vector product: the gradient of a gradient."""
    first = torch.randn(64, 64, requires_grad=True)
    second = torch.randn(64, 1, requires_grad=True)
    x, direction = torch.randn(256, 64), torch.randn(64, 64)

    def step():
        value = (torch.tanh(x @ first) @ second).pow(2).mean()
        (gradient,) = torch.autograd.grad(value, first, create_graph=True)
        (along,) = torch.autograd.grad((gradient * direction).sum(), first)
        return along.numpy()

    return step


def optimizer(torch):
    """One AdamW update of 100 parameters of 64 x 64, gradients given."""
    parameters = [torch.randn(64, 64, requires_grad=True) for _ in range(100)]
    for parameter in parameters:
        parameter.grad = torch.randn(64, 64)
    adamw = torch.optim.AdamW(parameters, 1e-3)

    def step():
        adamw.step()
        return parameters[-1].detach().numpy()

    return step


def loader(torch):
    """An epoch of shuffled minibatches."""
    features, labels = torch.randn(4096, 32), torch.randint(0, 10, (4096,))
    data = torch.utils.data.TensorDataset(features, labels)
    batches = torch.utils.data.DataLoader(data, batch_size=64, shuffle=True)
    return lambda: [(x.numpy(), y.numpy()) for x, y in batches]


WORKLOADS = {
    "chain_small": chain_small,
    "chain_small_grad": chain_small_grad,
    "linreg": linreg,
    "mlp_tiny": mlp_tiny,
    "ode": ode,
    "loop_write": loop_write,
    "add_10M": add_10M,
    "gelu_10M": gelu_10M,
    "softmax": softmax,
    "layernorm": layernorm,
    "layernorm_by_hand": layernorm_by_hand,
    "reductions": reductions,
    "gemm_64": product((64, 64), (64, 64)),
    "gemm_256": product((256, 256), (256, 256)),
    "gemm_1024": product((1024, 1024), (1024, 1024)),
    "bmm": product((96, 128, 64), (96, 64, 128)),
    "sdpa": sdpa,
    "mlp": mlp_step,
    "cnn": cnn,
    "gpt": gpt,
    "generate": generate,
    "generate_fresh": generate_fresh,
    "embedding": embedding,
    "indexing": indexing,
    "sort": sort,
    "hvp": hvp,
    "lstm": lstm,
    "optimizer": optimizer,
    "loader": loader,
    "scalars": scalars,
}
