class TestLogSoftmax(TestCaseMPS):
    DTYPES = (torch.float32, torch.float16, torch.bfloat16)

    def _reference(self, x, dim):
        shifted = x.cpu().double()
        shifted = shifted - shifted.amax(dim, keepdim=True)
        return (shifted - shifted.exp().sum(dim, keepdim=True).log()).to(x.dtype)

    def _randn(self, *shape, dtype=torch.float32):
        return torch.randn(shape).mul(5).to(device="mps", dtype=dtype)

    def _check(self, x, dim):
        self.assertEqual(torch.log_softmax(x, dim), self._reference(x, dim))

    @parametrize("dtype", DTYPES)
    @parametrize("size", (1, 2, 9, 31, 33, 257, 1000, 1025, 4096))
    def test_rows(self, dtype, size):
        for rows in (1, 9, 257):
            self._check(self._randn(rows, size, dtype=dtype), -1)

    @parametrize("dtype", DTYPES)
    def test_long_rows(self, dtype):
        # Few rows are split over threadgroups, many are not
        for shape in ((1, 4097), (2, 12289), (1, 151936), (128, 20001)):
            self._check(self._randn(*shape, dtype=dtype), -1)

    @parametrize("dtype", DTYPES)
    def test_columns(self, dtype):
        for shape in ((4, 150, 17, 3), (2, 600, 40), (3, 5, 64), (40, 7, 1), (2, 10001, 3), (1, 4097, 160)):
            self._check(self._randn(*shape, dtype=dtype), 1)

    @parametrize("dtype", DTYPES)
    def test_layouts(self, dtype):
        x = self._randn(6, 70, 50, dtype=dtype)
        image = self._randn(2, 40, 8, 16, dtype=dtype).to(memory_format=torch.channels_last)
        for view in (x.mT, x.permute(1, 2, 0), x[::3, 3:, ::2], x[:1].expand(3, -1, -1), x[..., :1].expand(-1, -1, 9), image):
            for dim in range(-view.dim(), view.dim()):
                self._check(view, dim)
        # Rows that begin at each place between two vectors
        for shift in range(9):
            self._check(self._randn(5, 131 + shift, dtype=dtype)[:, shift:], -1)

    @parametrize("shape", ((20, 33), (2, 9001), (300, 5)))
    def test_out(self, shape):
        rows, size = shape
        x = self._randn(*shape)
        expected = self._reference(x, 1)
        memory = torch.full((3 * rows, 3 * size), 7.0, device="mps")
        columns = torch.full((size, rows), 7.0, device="mps")
        for out in (memory[1::3, 1::3], memory[rows:-rows, size:-size], columns.t()):
            # torch.log_softmax would hand on a contiguous temporary
            torch._log_softmax(x, 1, False, out=out)
            self.assertEqual(out, expected)
            out.fill_(7.0)
            self.assertTrue((memory == 7.0).all())
        torch.log_softmax(x, 1, out=x)
        self.assertEqual(x, expected)
        square = self._randn(40, 40)
        expected = self._reference(square, 1)
        torch._log_softmax(square, 1, False, out=square.t())
        self.assertEqual(square.t(), expected)

    @parametrize("dtype", DTYPES)
    @parametrize("shape", ((4, 5), (4, 200), (4, 3000), (4, 9000), (4, 9000, 2)))
    def test_non_finite(self, dtype, shape):
        x = self._randn(*shape, dtype=dtype)
        x[0, shape[1] // 2] = float("nan")
        x[1, -1] = float("inf")
        x[2] = -float("inf")
        x[3, ::2] = -float("inf")
        self._check(x, 1)
        self.assertTrue(torch.log_softmax(x, 1)[:3].isnan().all())

    def test_leading_chunk_of_negative_infinity(self):
        for size in (4200, 9000, 20000):
            x = self._randn(2, size)
            x[:, :4096] = -float("inf")
            self._check(x, 1)
            self._check(x.t().contiguous(), 0)

    def test_values_far_from_zero(self):
        largest = torch.finfo(torch.float32).max
        self._check(torch.tensor([[-largest, largest, 0.0]], device="mps"), 1)
        self._check(self._randn(3, 100) + 1e6, 1)
        x = torch.full((3, 12416), 1000.0, dtype=torch.half, device="mps")
        self.assertEqual(torch.log_softmax(x, -1), torch.full_like(x, 12416).log().neg(), atol=0, rtol=0)

    @serialTest()
    @unittest.skipIf(total_memory < 24 * 1024**3, "Needs 10 GB of GPU memory")
    def test_large_index(self):
        memory = torch.empty(5 * 2**30, dtype=torch.half, device="mps")
        far = 2**32 + 64
        for size, stride, dim in (
            ((2, 100), (far, 1), 1),
            ((2, 9000), (far, 1), 1),
            ((600, 9000), (2**23, 1), 1),
            ((2, 60, 40), (far, 40, 1), 1),
            ((2, 4097, 160), (far, 160, 1), 1),
            ((2, 40, 8, 16), (far, 1, 640, 40), 1),
        ):
            x = self._randn(*size, dtype=torch.half)
            view = memory.as_strided(size, stride)
            torch._log_softmax(x, dim, False, out=view)
            self.assertEqual(view, self._reference(x, dim))
            out = torch._log_softmax(view.copy_(x), dim, False, out=torch.empty_like(x))
            self.assertEqual(out, self._reference(x, dim))

    def test_empty_and_scalar(self):
        for shape in ((0,), (0, 3), (3, 0), (2, 0, 4)):
            self.assertEqual(torch.log_softmax(torch.empty(shape, device="mps"), -1).shape, shape)
        self.assertEqual(torch.log_softmax(torch.tensor(3.0, device="mps"), 0).item(), 0)

    def test_unsupported(self):
        for dtype, name in ((torch.int64, "Long"), (torch.bool, "Bool"), (torch.complex64, "ComplexFloat")):
            with self.assertRaisesRegex(NotImplementedError, f"not implemented for '{name}'"):
                torch.log_softmax(torch.ones(3, dtype=dtype, device="mps"), 0)
        with self.assertRaisesRegex(RuntimeError, "half to float conversion is not supported"):
            torch._log_softmax(self._randn(3, dtype=torch.half), 0, True)

    def test_cross_entropy(self):
        logits = self._randn(2, 12, 5, 7).requires_grad_()
        target = torch.randint(0, 12, (2, 5, 7))
        target[0, 0] = -100
        F.cross_entropy(logits, target.to("mps")).backward()
        kept = (target != -100).unsqueeze(1)
        one_hot = F.one_hot(target.clamp(min=0), 12).movedim(-1, 1)
        probabilities = self._reference(logits.detach(), 1).exp()
        self.assertEqual(logits.grad, (probabilities - one_hot) * kept / kept.sum())


