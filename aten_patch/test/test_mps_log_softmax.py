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


def reference(x, dim):
    """log_softmax in float64 on the CPU, from its definition."""
    if x.dim() == 0:
        return reference(x.reshape(1), 0).reshape(())
    x = x.cpu().double()
    shifted = x - x.amax(dim, keepdim=True)
    return shifted - shifted.exp().sum(dim, keepdim=True).log()


def randn(*shape, dtype=torch.float32):
    return torch.randn(*shape).mul(5).to(dtype).to(DEVICE)


class TestLogSoftmax(TestCase):
    def check(self, x, dim):
        expected = reference(x, dim).to(x.dtype)
        self.assertEqual(torch.log_softmax(x, dim).cpu(), expected)

    @parametrize("dtype", DTYPES)
    @parametrize("size", (9, 31, 32, 33, 128, 129, 256, 257, 1000, 1025, 4096))
    def test_row_in_registers(self, dtype, size):
        for rows in (1, 7, 8, 9):
            self.check(randn(rows, size, dtype=dtype), -1)

    @parametrize("dtype", DTYPES)
    def test_long_rows_in_registers(self, dtype):
        # More rows than a GPU has cores, so that they are not split
        for size in (4097, 16384):
            self.check(randn(128, size, dtype=dtype), -1)

    @parametrize("dtype", DTYPES)
    @parametrize("size", (1, 2, 3, 8))
    def test_tiny_rows(self, dtype, size):
        for rows in (1, 255, 257, 1000):
            self.check(randn(rows, size, dtype=dtype), -1)

    @parametrize("dtype", DTYPES)
    @parametrize("shape", ((1, 4097), (2, 12289), (1, 151936)))
    def test_few_long_rows(self, dtype, shape):
        self.check(randn(*shape, dtype=dtype), -1)

    @parametrize("dtype", DTYPES)
    def test_many_long_rows(self, dtype):
        # Expanded, because rows past the registers' size need hundreds of rows
        # to be worth no split
        x = randn(1, 65541, dtype=dtype)
        expected = reference(x, -1).to(dtype)
        actual = torch.log_softmax(x.expand(512, -1), -1)
        self.assertEqual(actual[:1].cpu(), expected)
        self.assertEqual(actual[-1:].cpu(), expected)

    @parametrize("dtype", DTYPES)
    @parametrize("shape", ((4, 150, 17, 3), (3, 1000, 40), (1, 2, 1000), (40, 7, 1)))
    def test_inner_dim(self, dtype, shape):
        self.check(randn(*shape, dtype=dtype), 1)

    @parametrize("dtype", DTYPES)
    def test_inner_dim_in_vectors(self, dtype):
        for shape in ((2, 150, 16, 8), (3, 5, 64), (2, 600, 40)):
            self.check(randn(*shape, dtype=dtype), 1)

    def test_few_long_columns(self):
        self.check(randn(10001, 3), 0)

    @parametrize("dtype", DTYPES)
    def test_long_columns(self, dtype):
        self.check(randn(4097, 160, dtype=dtype), 0)

    @parametrize("dtype", DTYPES)
    def test_unaligned_rows(self, dtype):
        for size in (64, 131, 1003):
            for shift in range(9):
                self.check(randn(5, size + shift, dtype=dtype)[:, shift:], -1)

    def test_every_dim(self):
        x = randn(2, 3, 4, 5, 6)
        for ndim in range(1, 6):
            view = x.flatten(ndim - 1)
            for dim in range(-ndim, ndim):
                self.check(view, dim)

    def test_scalar_and_single_elements(self):
        self.assertEqual(torch.log_softmax(randn(()), 0).item(), 0)
        self.assertEqual(torch.log_softmax(randn(1), -1).item(), 0)
        self.check(randn(5, 1, 3), 1)
        self.check(randn(1, 1, 30), -1)

    def test_empty(self):
        for shape in ((0,), (0, 3), (3, 0), (2, 0, 4)):
            for dim in range(len(shape)):
                self.assertEqual(torch.log_softmax(randn(*shape), dim).shape, shape)

    @parametrize("dtype", DTYPES)
    def test_transposed(self, dtype):
        x = randn(6, 70, 50, dtype=dtype)
        for view in (x.transpose(-2, -1), x.transpose(0, 2), x.permute(1, 2, 0)):
            for dim in range(3):
                self.check(view, dim)

    @parametrize("dtype", DTYPES)
    def test_channels_last(self, dtype):
        for shape in ((2, 20, 9, 11), (2, 40, 8, 16), (1, 600, 8, 4)):
            x = randn(*shape, dtype=dtype).to(memory_format=torch.channels_last)
            for dim in range(4):
                self.check(x, dim)

    def test_sliced(self):
        self.check(randn(1, 8, 5)[..., :4], 1)
        self.check(randn(1, 8, 5)[:, 1:, 1:], 1)
        self.check(randn(40, 100)[3:, 5:70], -1)
        self.check(randn(40, 100)[::3, ::2], -1)
        self.check(randn(3, 9000)[:, 7::2], -1)

    def test_expanded(self):
        self.check(randn(20, 1).expand(20, 50), 1)
        self.check(randn(1, 50).expand(20, 50), 1)
        self.check(randn(1, 50).expand(20, 50), 0)
        self.check(randn(1).expand(2, 30, 4), 1)

    @parametrize("shape", ((20, 33), (2, 9001), (300, 5)))
    def test_strided_out(self, shape):
        rows, size = shape
        x = randn(rows, size)
        expected = reference(x, 1).float()
        untouched = 7.0
        transposed = torch.full((size, rows), untouched, device=DEVICE)
        stepped = torch.full((rows, 3 * size), untouched, device=DEVICE)
        pitched = torch.full((rows + 2, size + 5), untouched, device=DEVICE)
        for buffer, out in (
            (transposed, transposed.t()),
            (stepped, stepped[:, 1::3]),
            (pitched, pitched[1:-1, 2:-3]),
        ):
            # torch.log_softmax would hand on a contiguous temporary
            torch._log_softmax(x, 1, False, out=out)
            self.assertEqual(out.cpu(), expected)
            written = torch.zeros_like(buffer)
            written.as_strided(out.shape, out.stride(), out.storage_offset()).fill_(1)
            self.assertTrue((buffer[written == 0] == untouched).all())

    def test_out_is_resized(self):
        x = randn(5, 6)
        out = torch.empty(0, device=DEVICE)
        torch.log_softmax(x, 1, out=out)
        self.assertEqual(out.cpu(), reference(x, 1).float())

    @parametrize("shape", ((20, 33), (2, 9001), (300, 5)))
    def test_in_place(self, shape):
        x = randn(*shape)
        expected = reference(x, 1).float()
        torch.log_softmax(x, 1, out=x)
        self.assertEqual(x.cpu(), expected)

    def test_out_overlaps_input(self):
        memory = randn(40, 40)
        expected = reference(memory, 1).float()
        out = memory.t()
        torch._log_softmax(memory, 1, False, out=out)
        self.assertEqual(out.cpu(), expected)

    def test_contaminated_rows(self):
        inf, nan = float("inf"), float("nan")
        x = torch.tensor([[nan, inf, -inf], [-0.0663, 0.1321, -0.0410]], device=DEVICE)
        actual = torch.log_softmax(x, 1).cpu()
        self.assertTrue(actual[0].isnan().all())
        self.assertEqual(actual[1], reference(x[1], 0).float())

    @parametrize("dtype", DTYPES)
    @parametrize("shape", ((4, 5), (4, 200), (4, 3000), (4, 9000), (4, 9000, 2)))
    def test_non_finite(self, dtype, shape):
        inf, nan = float("inf"), float("nan")
        x = randn(*shape, dtype=dtype)
        x[0, shape[1] // 2] = nan
        x[1, shape[1] - 1] = inf
        x[2] = -inf
        x[3, ::2] = -inf
        self.check(x, 1)
        self.assertTrue(torch.log_softmax(x, 1)[:3].isnan().all())

    def test_leading_chunk_of_negative_infinity(self):
        for size in (4200, 9000, 20000):
            x = randn(2, size)
            x[:, :4096] = -float("inf")
            self.check(x, 1)
            self.check(x.t().contiguous(), 0)

    def test_wide_range(self):
        # fmt: off
        x = torch.tensor([
            [-16.9397, 74.5907, -245.5731, 57.9282, -59.7757,
             26.2957, -27.3786, 71.2639, 57.6391, 54.0626],
            [-13.8363, 62.5153, -206.0240, 48.6378, -51.2763,
             21.7313, -22.6663, 59.4996, 47.2677, 47.7668],
        ], device=DEVICE)
        first = torch.tensor(
            [-91.5657, -0.0353, -320.1991, -16.6978, -134.4017,
             -48.3303, -102.0046, -3.3621, -16.9869, -20.5634])
        # fmt: on
        self.check(x, -1)
        self.assertEqual(torch.log_softmax(x, -1)[0].cpu(), first, atol=1e-4, rtol=0)

    def test_extreme_values(self):
        largest = torch.finfo(torch.float32).max
        self.check(torch.tensor([[-largest, largest, 0.0]], device=DEVICE), 1)
        self.check(randn(3, 100) + 1e6, 1)

    def test_large_constant(self):
        x = torch.full((3, 12416), 1000.0, dtype=torch.half, device=DEVICE)
        expected = torch.full((3, 12416), 12416.0).log().neg().half()
        self.assertEqual(torch.log_softmax(x, -1).cpu(), expected, atol=0, rtol=0)

    def test_cross_entropy_training(self):
        logits = randn(2, 12, 5, 7).requires_grad_()
        target = torch.randint(0, 12, (2, 5, 7), device=DEVICE)
        target[0, 0] = -100
        loss = F.cross_entropy(logits, target)
        loss.backward()

        log_probs = reference(logits.detach(), 1)
        kept = target.cpu() != -100
        classes = target.cpu().clamp(min=0)
        picked = log_probs.gather(1, classes.unsqueeze(1)).squeeze(1)
        self.assertEqual(loss.detach().cpu(), -picked[kept].mean().float())
        one_hot = F.one_hot(classes, 12).movedim(-1, 1)
        grad = (log_probs.exp() - one_hot) * kept.unsqueeze(1) / kept.sum()
        self.assertEqual(logits.grad.cpu(), grad.float())

    def test_unsupported_dtypes(self):
        for dtype, name in (
            (torch.int64, "Long"),
            (torch.bool, "Bool"),
            (torch.complex64, "ComplexFloat"),
        ):
            x = torch.ones(3, dtype=dtype, device=DEVICE)
            with self.assertRaisesRegex(
                NotImplementedError, f"not implemented for '{name}'"
            ):
                torch.log_softmax(x, 0)

    def test_half_to_float(self):
        with self.assertRaisesRegex(
            RuntimeError, "half to float conversion is not supported"
        ):
            torch._log_softmax(randn(3, dtype=torch.half), 0, True)


instantiate_parametrized_tests(TestLogSoftmax)

if __name__ == "__main__":
    run_tests()
