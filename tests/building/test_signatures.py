"""Signatures of kernels, as torchgen declares them and as host code defines them."""

from __future__ import annotations

import unittest

from mpskit.building.signatures import declared_signature, defined_signature

HEADER = """\
namespace at { namespace native {
TORCH_API at::Tensor relu_mps(const at::Tensor & self);
TORCH_API ::std::tuple<at::Tensor,at::Tensor> sort_mps(const at::Tensor & self, int64_t dim=-1);
struct TORCH_API structured_square_mps_out : public at::meta::structured_square {
void impl(const at::Tensor & self, ::std::optional<int64_t> dim, bool, const at::Tensor & out);
};
}}
"""


class SignaturesTest(unittest.TestCase):
    def assert_agree(self, kernel: str, source: str, expected: str) -> None:
        declared = declared_signature(HEADER, kernel)
        self.assertEqual(str(declared), expected)
        self.assertEqual(defined_signature(source, kernel), declared)

    def test_structured(self) -> None:
        self.assert_agree(
            "square_mps_out",
            "TORCH_IMPL_FUNC(square_mps_out)\n"
            "(const Tensor& self, const std::optional<int64_t> dim, bool, const Tensor& out) {}",
            "square_mps_out(const Tensor &, std::optional < int64_t >, bool, const Tensor &)",
        )

    def test_plain_function(self) -> None:
        self.assert_agree(
            "relu_mps",
            "Tensor relu_mps(const at::Tensor& x) { return x; }",
            "relu_mps(const Tensor &)",
        )

    def test_default_arguments_and_names_do_not_count(self) -> None:
        self.assert_agree(
            "sort_mps",
            "std::tuple<Tensor, Tensor> sort_mps(\n    const Tensor& input, int64_t d) {\n}",
            "sort_mps(const Tensor &, int64_t)",
        )

    def test_different_types(self) -> None:
        source = "TORCH_IMPL_FUNC(square_mps_out)(Tensor& self, int dim) {}"
        self.assertEqual(
            str(defined_signature(source, "square_mps_out")), "square_mps_out(Tensor &, int)"
        )

    def test_kernels_that_are_not_there(self) -> None:
        self.assertIsNone(declared_signature(HEADER, "square_out"))
        self.assertIsNone(declared_signature(HEADER, "square_mps"))
        self.assertIsNone(
            defined_signature("// TORCH_IMPL_FUNC(square_mps_out)(int)", "square_mps_out")
        )
        self.assertIsNone(defined_signature("auto y = relu_mps(x);", "relu_mps"))
