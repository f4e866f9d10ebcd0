"""What a kernel is for is told by its name."""

from __future__ import annotations

import polars as pl

from stepscope.analyzers.latency.causes import CAUSES
from stepscope.analyzers.latency.kernel_kinds import KINDS, kind_of
from tests.looped import looped


@looped(
    ("name", "kind"),
    [
        ("ncclDevKernel_Generic_4(ncclDevKernelArgsStorage<4096ul>)", "communication"),
        ("ncclKernel_AllReduce_RING_LL_Sum_float(ncclDevComm*, unsigned long)", "communication"),
        ("void vllm::cross_device_reduce_1stage<__half, 2>(...)", "communication"),
        ("Cijk_Alik_Bljk_BBS_BH_Bias_HA_S_SAV_UserArgs_MT128x256x32", "gemm"),
        ("nvjet_tst_192x192_64x4_1x2_h_bz_coopB_TNN", "gemm"),
        ("void cutlass::Kernel2<cutlass_80_simt_sgemm_128x32_8x5_nn_align1>(...)", "gemm"),
        ("fused_moe_kernel", "gemm"),
        ("_matmul_ogs_NNT_bf16xbf16xmxfp4_128x128x128x1_swiglu", "gemm"),
        ("kernel_unified_attention_2d", "attention"),
        ("void pytorch_flash::flash_fwd_kernel<..., cutlass::bfloat16_t>", "attention"),
        ("_ZN7ck_tile6kentryILi2ENS_38FmhaBatchPrefillWithPagedKVCacheKernel", "attention"),
        ("void vllm::reshape_and_cache_flash_kernel<__hip_bfloat16>", "kernel"),
        ("void fbgemm_gpu::permute_2D_data_kernel<false, int, int>", "kernel"),
        ("triton_poi_fused__to_copy_1", "kernel"),
    ],
)
def test_a_kernels_name_tells_what_it_is_for(name: str, kind: str) -> None:
    assert pl.select(kind_of(pl.lit(name), pl.lit("kernel"))).item() == kind


def test_kinds_of_kernels_are_causes() -> None:
    assert set(KINDS) <= {cause.name for cause in CAUSES}
