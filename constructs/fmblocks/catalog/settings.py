"""What a project file may say about instance types that the catalogue does not have, or has wrong."""

from __future__ import annotations

from typing import Annotated, Any

from pydantic import AfterValidator, Field

from fmblocks.catalog import normalise
from fmblocks.settings import Settings, Text, WholeNumber


class CatalogEntry(Settings):
    """An instance type to add, or values of one to replace; what is left out stays as it is, or unknown."""

    name: Annotated[Text, AfterValidator(normalise), Field(description="EC2 or ml. name")]
    architecture: Text | None = None
    accelerator_model: Text | None = None
    accelerator_count: WholeNumber | None = None
    hbm_gib_per_accelerator: WholeNumber | None = None
    hbm_gib_total: WholeNumber | None = None
    peak_dense_tflops_bf16: WholeNumber | None = None
    peak_dense_tflops_fp8: WholeNumber | None = None
    peak_dense_tflops_fp4: WholeNumber | None = None
    vcpus: WholeNumber | None = None
    memory_gib: WholeNumber | None = None
    network_cards: WholeNumber | None = None
    max_efa_interfaces: WholeNumber | None = None
    efa_gbps_total: WholeNumber | None = None
    max_enis_per_card: WholeNumber | None = None
    local_nvme_count: WholeNumber | None = None
    local_nvme_size_gb: WholeNumber | None = None
    fsx_lustre_efa_client: bool | None = None
    hyperpod: bool | None = None
    training_plans: bool | None = None
    capacity_blocks: Text | None = None

    def row(self) -> dict[str, Any]:
        """The entry as :func:`fmblocks.catalog.merged` takes it."""
        return self.model_dump(exclude_none=True)
