# Owner(s): ["module: mps"]

import torch
import torch.nn.functional as F
from torch.testing._internal.common_utils import (
    instantiate_parametrized_tests,
    parametrize,
    run_tests,
    TestCase,
)


DEVICE = "mps" if torch.backends.mps.is_available() else "cpu"
DTYPES = (torch.float32, torch.float16, torch.bfloat16)


def reference(grad, output, dim):
    """The gradient of log_softmax's input in float64 on the CPU, from its definition."""
    if grad.dim() == 0:
        return reference(grad.reshape(1), output.reshape(1), 0).reshape(())
    grad, output = grad.cpu().double(), output.cpu().double()
    return grad - output.exp() * grad.sum(dim, keepdim=True)


def random_grad(*shape, dtype=torch.float32):
    # Positive on the whole, so that its sum is far from 0
    return torch.randn(shape).add(0.5).to(dtype).to(DEVICE)


def log_probabilities(*shape, dim, dtype=torch.float32):
    return torch.log_softmax(torch.randn(shape).mul(5), dim).to(dtype).to(DEVICE)


def backward(grad, output, dim, **out):
    return torch.ops.aten._log_softmax_backward_data(
        grad, output, dim, output.dtype, **out
    )


class TestLogSoftmaxBackward(TestCase):
    def check(self, grad, output, dim):
        expected = reference(grad, output, dim).to(grad.dtype)
        self.assertEqual(backward(grad, output, dim).cpu(), expected)

    def check_shape(self, *shape, dim, dtype=torch.float32):
        grad = random_grad(*shape, dtype=dtype)
        self.check(grad, log_probabilities(*shape, dim=dim, dtype=dtype), dim)

    @parametrize("dtype", DTYPES)
    @parametrize("size", (1, 8, 31, 32, 33, 128, 129, 256, 257, 1000, 1025, 4096))
    def test_row_in_registers(self, dtype, size):
        for rows in (1, 7, 257):
            self.check_shape(rows, size, dim=-1, dtype=dtype)

    @parametrize("dtype", DTYPES)
    def test_long_rows_in_registers(self, dtype):
        # More rows than a GPU has cores, so that they are not split
        for size in (4097, 16384):
            self.check_shape(128, size, dim=-1, dtype=dtype)

    @parametrize("dtype", DTYPES)
    @parametrize("shape", ((1, 4097), (2, 12289), (1, 151936)))
    def test_few_long_rows(self, dtype, shape):
        self.check_shape(*shape, dim=-1, dtype=dtype)

    @parametrize("dtype", DTYPES)
    def test_many_long_rows(self, dtype):
        # Expanded, because rows past the registers' size need hundreds of rows
        # to be worth no split
        grad = random_grad(1, 40961, dtype=dtype)
        output = log_probabilities(1, 40961, dim=-1, dtype=dtype)
        expected = reference(grad, output, -1).to(dtype)
        actual = backward(grad.expand(330, -1), output.expand(330, -1), -1)
        self.assertEqual(actual[:1].cpu(), expected)
        self.assertEqual(actual[-1:].cpu(), expected)

    @parametrize("dtype", DTYPES)
    @parametrize("shape", ((4, 150, 17, 3), (3, 1000, 40), (1, 2, 1000), (40, 7, 1)))
    def test_inner_dim(self, dtype, shape):
        self.check_shape(*shape, dim=1, dtype=dtype)

    @parametrize("dtype", DTYPES)
    def test_inner_dim_in_vectors(self, dtype):
        for shape in ((2, 150, 16, 8), (3, 5, 64), (2, 600, 40)):
            self.check_shape(*shape, dim=1, dtype=dtype)

    def test_few_long_columns(self):
        self.check_shape(10001, 3, dim=0)

    @parametrize("dtype", DTYPES)
    def test_long_columns(self, dtype):
        self.check_shape(4097, 160, dim=0, dtype=dtype)

    @parametrize("dtype", DTYPES)
    def test_unaligned_rows(self, dtype):
        for size in (64, 131, 1003):
            for shift in range(9):
                shape = (5, size + shift)
                grad = random_grad(*shape, dtype=dtype)
                output = log_probabilities(*shape, dim=-1, dtype=dtype)
                self.check(grad[:, shift:], output[:, shift:], -1)
                self.check(grad[:, : size // 2], output[:, size // 2 : size // 2 * 2], -1)

    def test_every_dim(self):
        grad = random_grad(2, 3, 4, 5, 6)
        output = log_probabilities(2, 3, 4, 5, 6, dim=-1)
        for ndim in range(1, 6):
            for dim in range(-ndim, ndim):
                self.check(grad.flatten(ndim - 1), output.flatten(ndim - 1), dim)

    def test_scalar_and_single_elements(self):
        for shape in ((), (1,), (5, 1, 3), (1, 1, 30)):
            dim = 1 if len(shape) == 3 else 0
            output = torch.zeros(shape, device=DEVICE)
            self.check(random_grad(*shape), output, dim)

    def test_empty(self):
        for shape in ((0,), (0, 3), (3, 0), (2, 0, 4)):
            for dim in range(len(shape)):
                grad = random_grad(*shape)
                self.assertEqual(backward(grad, grad, dim).shape, shape)

    @parametrize("dtype", DTYPES)
    def test_transposed(self, dtype):
        grad = random_grad(6, 70, 50, dtype=dtype)
        output = log_probabilities(6, 70, 50, dim=1, dtype=dtype)
        for order in ((0, 2, 1), (2, 1, 0), (1, 2, 0)):
            for dim in range(3):
                self.check(grad.permute(order), output.permute(order), dim)

    @parametrize("dtype", DTYPES)
    def test_channels_last(self, dtype):
        for shape in ((2, 20, 9, 11), (2, 40, 8, 16), (1, 600, 8, 4)):
            grad = random_grad(*shape, dtype=dtype)
            output = log_probabilities(*shape, dim=1, dtype=dtype)
            last_grad = grad.to(memory_format=torch.channels_last)
            last_output = output.to(memory_format=torch.channels_last)
            for dim in range(4):
                self.check(last_grad, last_output, dim)
                self.check(grad, last_output, dim)
                self.check(last_grad, output, dim)

    def test_sliced(self):
        grad = random_grad(40, 9000)
        output = log_probabilities(40, 9000, dim=-1)
        self.check(grad[3:, 5:70], output[3:, 6:71], -1)
        self.check(grad[::3, ::2], output[::3, 1::2], -1)
        self.check(grad[:3, 7::2], output[:3, 7::2], -1)
        self.check(grad[:, 7:150], output[:, 7:150], 0)

    @parametrize("dtype", DTYPES)
    @parametrize("shape", ((20, 50), (3, 9000), (40, 6, 33)))
    def test_expanded_grad(self, dtype, shape):
        # What sum() and mean() hand back
        for dim in range(len(shape)):
            output = log_probabilities(*shape, dim=dim, dtype=dtype)
            self.check(random_grad(1, dtype=dtype).expand(shape), output, dim)
            row = random_grad(shape[-1], dtype=dtype)
            self.check(row.expand(shape), output, dim)

    @parametrize("shape", ((20, 33), (2, 9001), (300, 5)))
    def test_strided_grad_input(self, shape):
        rows, size = shape
        grad, output = random_grad(rows, size), log_probabilities(rows, size, dim=1)
        expected = reference(grad, output, 1).float()
        untouched = 700.0
        transposed = torch.full((size, rows), untouched, device=DEVICE)
        stepped = torch.full((rows, 3 * size), untouched, device=DEVICE)
        pitched = torch.full((rows + 2, size + 5), untouched, device=DEVICE)
        for buffer, out in (
            (transposed, transposed.t()),
            (stepped, stepped[:, 1::3]),
            (pitched, pitched[1:-1, 2:-3]),
        ):
            backward(grad, output, 1, out=out)
            self.assertEqual(out.cpu(), expected)
            written = torch.zeros_like(buffer)
            written.as_strided(out.shape, out.stride(), out.storage_offset()).fill_(1)
            self.assertTrue((buffer[written == 0] == untouched).all())

    @parametrize("shape", ((20, 33), (2, 9001), (300, 5)))
    def test_in_place(self, shape):
        output = log_probabilities(*shape, dim=1)
        for overwritten in range(2):
            tensors = [random_grad(*shape), output.clone()]
            expected = reference(*tensors, 1).float()
            backward(*tensors, 1, out=tensors[overwritten])
            self.assertEqual(tensors[overwritten].cpu(), expected)

    def test_grad_input_overlaps(self):
        for overlapped in range(2):
            tensors = [random_grad(40, 40), log_probabilities(40, 40, dim=1)]
            expected = reference(*tensors, 1).float()
            out = tensors[overlapped].t()
            backward(*tensors, 1, out=out)
            self.assertEqual(out.cpu(), expected)

    @parametrize("dtype", DTYPES)
    @parametrize("shape", ((4, 5), (4, 200), (4, 9000), (4, 9000, 2)))
    def test_non_finite(self, dtype, shape):
        inf, nan = float("inf"), float("nan")
        grad = random_grad(*shape, dtype=dtype)
        output = log_probabilities(*shape, dim=1, dtype=dtype)
        grad[0, shape[1] // 2] = nan
        grad[1, shape[1] - 1] = inf
        output[2] = nan
        output[3, ::2] = -inf
        expected = reference(grad, output, 1).to(dtype)
        actual = backward(grad, output, 1).cpu()
        self.assertEqual(actual, expected)
        self.assertTrue(actual[[0, 2]].isnan().all())
        self.assertEqual(actual[3, ::2], grad[3, ::2].cpu(), atol=0, rtol=0)

    def test_leading_chunk_of_negative_infinity(self):
        for size in (4200, 9000, 20000):
            x = torch.randn(2, size)
            x[:, :4096] = -float("inf")
            output = torch.log_softmax(x, 1).to(DEVICE)
            grad = random_grad(2, size)
            self.check(grad, output, 1)
            self.check(grad.t().contiguous(), output.t().contiguous(), 0)

    def test_grad_that_adds_up_to_zero(self):
        grad = torch.randint(-8, 9, (3, 4096)).float().to(DEVICE)
        grad[:, 2048:] = -grad[:, :2048]
        actual = backward(grad, log_probabilities(3, 4096, dim=1), 1)
        self.assertEqual(actual, grad, atol=0, rtol=0)

    @parametrize("dtype", DTYPES)
    @parametrize("shape", ((16, 100), (2, 10, 5, 7), (2, 9000)))
    def test_autograd(self, dtype, shape):
        x = torch.randn(*shape).mul(3).to(dtype).to(DEVICE).requires_grad_()
        grad = random_grad(*shape, dtype=dtype)
        output = torch.log_softmax(x, 1)
        output.backward(grad)
        expected = reference(grad, output.detach(), 1).to(dtype)
        self.assertEqual(x.grad.cpu(), expected)

    def test_cross_entropy_training(self):
        logits = torch.randn(2, 12, 5, 7).to(DEVICE).requires_grad_()
        target = torch.randint(0, 12, (2, 5, 7)).to(DEVICE)
        target[0, 0] = -100
        F.cross_entropy(logits, target).backward()
        kept = target.cpu() != -100
        probabilities = logits.detach().cpu().double().softmax(1)
        one_hot = F.one_hot(target.cpu().clamp(min=0), 12).movedim(-1, 1)
        grad = (probabilities - one_hot) * kept.unsqueeze(1) / kept.sum()
        self.assertEqual(logits.grad.cpu(), grad.float())

    def test_unsupported_dtypes(self):
        for dtype, name in ((torch.int64, "Long"), (torch.complex64, "ComplexFloat")):
            x = torch.ones(3, dtype=dtype, device=DEVICE)
            with self.assertRaisesRegex(
                NotImplementedError, f"not implemented for '{name}'"
            ):
                backward(x, x, 0)

    def test_grad_of_another_dtype(self):
        with self.assertRaisesRegex(
            RuntimeError, "float to half conversion is not supported"
        ):
            torch.ops.aten._log_softmax_backward_data(
                random_grad(3), log_probabilities(3, dim=0), 0, torch.half
            )


instantiate_parametrized_tests(TestLogSoftmaxBackward)

if __name__ == "__main__":
    run_tests()
