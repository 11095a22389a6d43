"""What a project file may say about instance types that the catalogue does not have, or has wrong."""

from __future__ import annotations

from typing import Annotated, Any, ClassVar, Literal

from pydantic import AfterValidator, Field

from fmblocks.catalog import normalise
from fmblocks.settings import Settings, Text, WholeNumber

Count = Annotated[WholeNumber, Field(ge=0)]


class CatalogEntry(Settings):
    """An instance type to add, or values of one to replace; what is left out stays as it is, or unknown."""

    FOREIGN: ClassVar = {"accelerator_memory_gib": "the keys are hbm_gib_per_accelerator and hbm_gib_total"}

    name: Annotated[
        Text, AfterValidator(normalise), Field(pattern=r"^(?i:ml\.)?[\w-]+\.[\w-]+$", description="EC2 or ml. name")
    ]
    architecture: Annotated[Literal["x86_64", "arm64"] | None, Field(description="of the CPU")] = None
    accelerator_vendor: Literal["nvidia", "aws"] | None = None
    accelerator_model: Text | None = None
    accelerator_count: Count | None = None
    nvlinks_per_accelerator: Count | None = None
    hbm_gib_per_accelerator: Count | None = None
    hbm_gib_total: Count | None = None
    peak_dense_tflops_bf16: Count | None = None
    peak_dense_tflops_fp8: Count | None = None
    peak_dense_tflops_fp4: Count | None = None
    vcpus: Count | None = None
    memory_gib: Count | None = None
    network_cards: Count | None = None
    max_efa_interfaces: Count | None = None
    efa_gbps_total: Count | None = None
    max_enis_per_card: Count | None = None
    local_nvme_count: Count | None = None
    local_nvme_size_gb: Count | None = None
    fsx_lustre_efa_client: bool | None = None
    hyperpod: bool | None = None
    training_plans: bool | None = None
    capacity_blocks: Literal["instance", "ultraserver-only"] | None = None

    def row(self) -> dict[str, Any]:
        """The entry as :func:`fmblocks.catalog.merged` takes it."""
        return self.model_dump(exclude_none=True)
