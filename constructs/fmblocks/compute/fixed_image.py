"""A machine image that is named by its id."""

from __future__ import annotations

import jsii
from aws_cdk import aws_ec2 as ec2
from constructs import Construct


@jsii.implements(ec2.IMachineImage)
class FixedImage:
    """An image by its id, in whatever Region the stack goes to: it does not change until the id does.

    ``ec2.MachineImage.generic_linux`` wants a map of Regions, which a stack without one cannot give.

    Args:
        image_id: ``ami-…``.
    """

    def __init__(self, image_id: str) -> None:
        self._image_id = image_id

    def get_image(self, scope: Construct) -> ec2.MachineImageConfig:  # noqa: ARG002  the interface has it
        """What constructs of aws-cdk-lib ask for."""
        return ec2.MachineImageConfig(
            image_id=self._image_id, os_type=ec2.OperatingSystemType.LINUX, user_data=ec2.UserData.for_linux()
        )
