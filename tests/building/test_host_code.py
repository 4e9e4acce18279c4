"""Host code compiled for macOS on this machine: ours is accepted, broken variants of it are not."""

from __future__ import annotations

import shutil
import struct
import tempfile
import unittest
from contextlib import ExitStack
from pathlib import Path

from checkouts import ACTIVATION, OPERATIONS

from mpskit.building import Context, Log, Subject, codegen, default_out
from mpskit.building.macho import defined_symbols, kernel_symbol
from mpskit.building.objective_cpp import ObjectiveCpp, Variant
from mpskit.building.result import Step
from mpskit.building.toolchain import open_toolchain
from mpskit.checkout.checkout import Checkout
from mpskit.checkout.skeleton import make_skeleton
from mpskit.errors import MpskitError
from mpskit.patching import apply, load_patch_set

SOURCE = f"{OPERATIONS}/LogSoftmax.mm"
HEADER = f"{OPERATIONS}/LogSoftmaxLaunch.h"
PREFIX = "#define TORCH_ASSERT_ONLY_METHOD_OPERATORS\n#include <ATen/native/mps/OperationUtils.h>\n"


class HostCodeTest(unittest.TestCase):
    """A skeleton with the patch set applied, shared by the tests; each puts its own text in."""

    @classmethod
    def setUpClass(cls) -> None:
        stack = ExitStack()
        cls.addClassCleanup(stack.close)
        directory = Path(stack.enter_context(tempfile.TemporaryDirectory())).resolve()
        cls.toolchain = stack.enter_context(open_toolchain())
        make_skeleton(directory / "pytorch")
        checkout, patch_set = Checkout.open(directory / "pytorch"), load_patch_set()
        apply(checkout, patch_set)
        cls.subject = Subject.find(checkout, patch_set)
        cls.context = Context(cls.subject, directory / "out")
        cls.context.out.mkdir()
        generated = cls.shared_headers(cls.subject)
        cls.compiler = ObjectiveCpp(cls.context, cls.toolchain, generated)
        cls.source = cls.subject.root / SOURCE
        cls.text = cls.source.read_text()
        cls.header = cls.subject.root / HEADER
        cls.header_text = cls.header.read_text()
        cls.prefix = cls.precompiled(directory)

    @staticmethod
    def shared_headers(subject: Subject) -> Path:
        """Generated once for all tests of this torch, which have the same native_functions.yaml."""
        out = default_out(Path("tests"))
        out.mkdir(parents=True, exist_ok=True)
        return codegen.generate(Context(subject, out))

    @classmethod
    def precompiled(cls, directory: Path) -> tuple[str, ...]:
        """Flags that spare a variant five seconds of headers, where they are not its point."""
        header, product = directory / "prefix.h", directory / "prefix.pch"
        header.write_text(PREFIX)
        finished = cls.toolchain.compile(
            [*cls.compiler.flags(), "-x", "objective-c++-header", header, "-o", product], Log()
        )
        assert finished.status == 0, finished.output
        return "-include-pch", str(product)

    def tearDown(self) -> None:
        self.source.write_text(self.text)
        self.header.write_text(self.header_text)
        shutil.rmtree(self.context.out / "host", ignore_errors=True)

    def compile(self, text: str, *, precompiled: bool = True, jit: bool = False) -> Step:
        self.source.write_text(text)
        definitions = ("-DPYTORCH_JIT_COMPILE_SHADERS",) if jit else ()
        return self.compiler.compile(
            Variant(SOURCE, "variant", definitions), self.prefix if precompiled else ()
        )

    def assert_refused(
        self, old: str, new: str, *messages: str, precompiled: bool = True, jit: bool = False
    ) -> None:
        """With ``old`` replaced by ``new``, in the source or else in its header, it fails with
        each of ``messages``."""
        place = SOURCE if old in self.text else HEADER
        self.assertIn(old, self.text if place == SOURCE else self.header_text)
        self.header.write_text(self.header_text.replace(old, new, 1))
        step = self.compile(self.text.replace(old, new, 1), precompiled=precompiled, jit=jit)
        self.assertFalse(step.passed)
        self.assertIsNone(step.product)
        self.assertFalse((self.context.out / "host/LogSoftmax.o").exists())
        for message in messages:
            self.assertIn(message, "\n".join(step.messages))
        self.assertRegex("\n".join(step.messages), rf"{place}:\d+:\d+: (error|warning): ")

    def test_ours_becomes_an_arm64_object_that_defines_the_kernel(self) -> None:
        step = self.compile(self.text, precompiled=False)
        self.assertEqual(step.messages, ())
        symbols = defined_symbols(Path(step.product or ""))
        self.assertEqual(
            kernel_symbol("log_softmax_mps_out", symbols),
            "__ZN2at6native30structured_log_softmax_mps_out4implERKNS_6TensorExbS4_",
        )
        self.assertIsNone(kernel_symbol("log_softmax_mps", symbols))
        self.objects_of_another_kind_are_told_apart(Path(step.product or ""))

    def test_our_backward_does_too(self) -> None:
        backward = SOURCE.replace("LogSoftmax.mm", "LogSoftmaxBackward.mm")
        step = self.compiler.compile(Variant(backward, "backward"))
        self.assertEqual(step.messages, ())
        self.assertEqual(
            kernel_symbol(
                "log_softmax_backward_mps_out", defined_symbols(Path(step.product or ""))
            ),
            "__ZN2at6native39structured_log_softmax_backward_mps_out4impl"
            "ERKNS_6TensorES4_xN3c1010ScalarTypeES4_",
        )

    def objects_of_another_kind_are_told_apart(self, product: Path) -> None:
        other = self.context.out / "other.o"
        # The second word of the header is the processor: here x86_64.
        data = bytearray(product.read_bytes())
        data[4:8] = struct.pack("<I", 0x01000007)
        other.write_bytes(data)
        with self.assertRaisesRegex(MpskitError, "no arm64 object file"):
            defined_symbols(other)
        other.write_bytes(b"\x7fELF and so on")
        with self.assertRaisesRegex(MpskitError, "no Mach-O file"):
            defined_symbols(other)

    def test_shaders_compiled_at_run_time(self) -> None:
        step = self.compile(self.text, jit=True)
        self.assertEqual(step.messages, ())
        self.assertEqual(Path(step.product or "").name, "LogSoftmax-jit.o")

    def test_shader_header_without_its_metal_file(self) -> None:
        self.source.write_text(self.text.replace("LogSoftmax_metallib", "LogSoftMax_metallib"))
        with self.assertRaisesRegex(MpskitError, "there is no .*kernels/LogSoftMax.metal"):
            self.compile(self.source.read_text(), jit=True)

    def test_upstreams_file_counts_only_what_the_edit_made_worse(self) -> None:
        path = self.subject.root / ACTIVATION
        upstream = path.read_text()
        self.addCleanup(path.write_text, upstream)
        # A method of MPSGraph's that is not among our declarations.
        before = upstream.replace("reLUWithTensor", "leakyReLUWithTensor")
        path.write_text(before)
        variant = Variant(ACTIVATION, "no shaders")
        same = self.compiler.compare(variant, before, self.prefix)
        self.assertTrue(same.passed)
        self.assertIn("1 messages before and after the edit, none of them new", same.detail)
        path.write_text(before.replace("result.numel() == 0", "result.count() == 0", 1))
        (message,) = self.compiler.compare(variant, before, self.prefix).messages
        self.assertRegex(message, rf"{ACTIVATION}:\d+:\d+: error: no member named 'count'")

    def test_misspelt_selector(self) -> None:
        self.assert_refused(
            "[encoder dispatchThreads:",
            "[encoder dispatchThread:",
            "instance method '-dispatchThread:threadsPerThreadgroup:' not found",
        )

    def test_wrong_argument_label(self) -> None:
        self.assert_refused(
            "threadsPerThreadgroup:",
            "threadsPerGroup:",
            "instance method '-dispatchThreads:threadsPerGroup:' not found",
        )

    def test_argument_of_a_wrong_type(self) -> None:
        self.assert_refused(
            "setComputePipelineState:pso",
            "setComputePipelineState:launch.kernel",
            "id<MTLComputePipelineState>",
        )

    def test_object_of_another_protocol(self) -> None:
        self.assert_refused(
            "setComputePipelineState:pso",
            "setComputePipelineState:encoder",
            "id<MTLComputePipelineState>",
            "id<MTLComputeCommandEncoder>",
        )

    def test_number_in_place_of_a_size(self) -> None:
        self.assert_refused(
            "MTLSizeMake(grid[0], grid[1], grid[2])", "grid[0]", "conversion", "to 'MTLSize'"
        )

    def test_too_few_arguments(self) -> None:
        self.assert_refused(
            "MTLSizeMake(group[0], group[1], group[2])",
            "MTLSizeMake(group[0], group[1])",
            "no matching function for call to 'MTLSizeMake'",
        )

    def test_missing_include_of_the_generated_header(self) -> None:
        self.assert_refused(
            "#include <ATen/ops/_log_softmax_native.h>\n",
            "",
            "structured_log_softmax_mps_out",
            precompiled=False,
        )

    def test_missing_include_of_the_mps_helpers(self) -> None:
        self.assert_refused(
            "#include <ATen/native/mps/OperationUtils.h>\n",
            "",
            "'MetalShaderLibrary'",
            precompiled=False,
        )

    def test_missing_include_of_our_own_header(self) -> None:
        self.assert_refused(
            "#include <ATen/native/mps/operations/LogSoftmaxPlan.h>\n", "", "'log_softmax'"
        )

    def test_include_that_is_nowhere(self) -> None:
        self.assert_refused(
            "operations/LogSoftmaxPlan.h", "operations/LogSoftmaxPlans.h", "file not found"
        )

    def test_signature_other_than_the_registered_one(self) -> None:
        self.assert_refused(
            "const bool half_to_float, const Tensor& out)",
            "const Tensor& out)",
            "out-of-line definition of 'impl' does not match",
        )

    def test_kernel_that_nothing_registers(self) -> None:
        self.assert_refused(
            "TORCH_IMPL_FUNC(log_softmax_mps_out)",
            "TORCH_IMPL_FUNC(log_softmax_metal_out)",
            "structured_log_softmax_metal_out",
        )

    def test_method_that_the_stream_does_not_have(self) -> None:
        self.assert_refused(
            "stream->commandEncoder()", "stream->encoder()", "no member named 'encoder'"
        )

    def test_block_of_another_type(self) -> None:
        self.assert_refused(
            "dispatch_sync_with_rethrow(stream->queue(), ^() {",
            "dispatch_sync_with_rethrow(stream->queue(), ^(int) {",
            "'dispatch_sync_with_rethrow'",
        )

    def test_api_of_a_newer_macos_than_the_oldest_supported(self) -> None:
        self.assert_refused(
            "  [encoder setComputePipelineState:pso];",
            "  [encoder setComputePipelineState:pso];\n"
            "  MTLCompileOptions* options = nil;\n"
            "  options.mathMode = MTLMathModeSafe;",
            "only available on macOS 15.0 or newer",
        )

    def test_warning_about_our_own_code(self) -> None:
        self.assert_refused(
            "  const auto& group = launch.group;",
            "  const auto& group = launch.group;\n  int unused = 3;",
            "warning: unused variable 'unused'",
        )
