"""A directory of a Lustre file system linked with S3."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence

import aws_cdk as cdk
from aws_cdk import aws_fsx as fsx
from aws_cdk import aws_iam as iam
from aws_cdk import aws_s3 as s3
from constructs import Construct

from fmblocks._edge import check_arguments, member, typed, unresolved
from fmblocks.governance.project_key import SERVICE_LINKED_ROLES, ProjectKey, data_repositories_statement
from fmblocks.storage import rules
from fmblocks.storage.lustre_file_system import ILustreFileSystem, LustreFileSystem, RepositoryLink
from fmblocks.storage.settings import DataRepositoryEvent, canonical_path, canonical_prefix


class DataRepositoryAssociation(cdk.Resource):
    """Links a directory of a file system with a bucket or a prefix of it.

    FSx works on one association request of a file system at a time, so those of one file system wait for each other.
    Both paths are create-only; they are written in one spelling (``/data``, ``s3://bucket/prefix/``), so that a slash
    more or less replaces nothing.

    The service-linked role of the file system needs no statement in a bucket of the same account; an SSE-KMS bucket's
    key must let it in (rule DRA-10). :class:`ProjectKey` does, another key of this app gets the statement here, and the
    owner of an imported one has to add it. A bucket of another account also needs :meth:`bucket_policy_statement`.

    Args:
        file_system: not scratch_1, not Intelligent-Tiering, not Lustre 2.10, without backups; may be imported.
        file_system_path: absolute; no other association's path lies inside it.
        bucket: the bucket, of this account or another one. Auto-import needs one of the same Region.
        bucket_prefix: default: the whole bucket.
        auto_import: events that S3 carries into the file system. Default: none.
        auto_export: events that the file system carries to S3. Default: none.
        batch_import_metadata_on_create: list what the bucket already holds when the link is made: auto-import covers
            only later changes. Create-only. Default: true.
        imported_file_chunk_size_mib: MiB of an imported file on one disk, 1 to 512000. Default: 1024, chosen by FSx.
        bucket_versioned: whether the bucket is known to keep versions. Default: what this app says of it.
        removal_policy: what becomes of the link; files and objects stay in any case. Default: DESTROY.

    Raises:
        FindingsError: rules DRA-01 to 04, 06, 07, 11 and FMB-60, over all associations of the file system. FMB-59
            warns.

    Attributes:
        data_repository_path: ``s3://bucket/prefix/``, or ``s3://bucket``.
        imports: whether anything is imported.
    """

    @typed
    def __init__(
        self,
        scope: Construct,
        id: str,
        *,
        file_system: ILustreFileSystem,
        file_system_path: str,
        bucket: s3.IBucket,
        bucket_prefix: str = "",
        auto_import: Sequence[DataRepositoryEvent] = (),
        auto_export: Sequence[DataRepositoryEvent] = (),
        batch_import_metadata_on_create: bool = True,
        imported_file_chunk_size_mib: int | None = None,
        bucket_versioned: bool | None = None,
        removal_policy: cdk.RemovalPolicy = cdk.RemovalPolicy.DESTROY,
    ) -> None:
        super().__init__(scope, id)
        path, prefix = canonical_path(file_system_path), canonical_prefix(bucket_prefix)
        auto_import = [member(DataRepositoryEvent, event, "auto_import") for event in auto_import]
        auto_export = [member(DataRepositoryEvent, event, "auto_export") for event in auto_export]
        # A bucket of this app has no name yet; its path says whether two are the same.
        name = bucket.node.path if cdk.Token.is_unresolved(bucket.bucket_name) else bucket.bucket_name
        before = list(file_system.links)
        self.link = RepositoryLink(path, name, prefix, auto_export, self)
        self.file_system = file_system
        self.imports = bool(auto_import)
        links = [*before, self.link]
        # A prefix that is not known yet must not hide two directories that overlap.
        plain = [
            dataclasses.replace(link, bucket=None, prefix="") if unresolved(link.prefix) else link
            for link in links
            if not unresolved(link.path)
        ]
        # Of an imported file system nobody knows the type.
        made_here = file_system if isinstance(file_system, LustreFileSystem) else None
        given = {
            "deployment_type": file_system.deployment_type,
            "storage_type": made_here.storage_type if made_here else None,
            "version": file_system.version,
            "automatic_backup_retention_days": made_here.automatic_backup_retention_days if made_here else None,
            "imported_file_chunk_size_mib": imported_file_chunk_size_mib,
            "data_repository_associations": plain,
            "auto_import": auto_import,
            "auto_export": auto_export,
            "bucket_versioned": _versioned(bucket) if bucket_versioned is None else bucket_versioned,
            "bucket_region": _known(bucket.env.region),
            "region": _known(cdk.Stack.of(self).region),
        }
        support = ("DRA-02", "DRA-11") if made_here else ()
        here = f"data_repository_associations[{len(plain) - 1}]"
        names = {
            "data_repository_associations": "file_system",
            "deployment_type": "file_system",
            "version": "file_system",
            "storage_type": "file_system",
            "automatic_backup_retention_days": "file_system",
            f"{here}.path": "file_system_path",
            f"{here}.bucket": "bucket",
            f"{here}.prefix": "bucket_prefix",
        }
        check_arguments(self, (*support, *rules.ASSOCIATION_CONSTRUCT), given, names=names)
        self.data_repository_path = f"s3://{bucket.bucket_name}/{prefix}" if prefix else f"s3://{bucket.bucket_name}"
        if bucket.encryption_key is not None and not isinstance(bucket.encryption_key, ProjectKey):
            # An imported key takes no statement: its owner has to let the role in.
            bucket.encryption_key.add_to_resource_policy(data_repositories_statement(self, region=bucket.env.region))
        self.resource = fsx.CfnDataRepositoryAssociation(
            self,
            "Resource",
            file_system_id=file_system.file_system_id,
            file_system_path=path,
            data_repository_path=self.data_repository_path,
            batch_import_meta_data_on_create=batch_import_metadata_on_create,
            imported_file_chunk_size=imported_file_chunk_size_mib,
            s3=fsx.CfnDataRepositoryAssociation.S3Property(
                auto_import_policy=fsx.CfnDataRepositoryAssociation.AutoImportPolicyProperty(
                    events=[event.upper() for event in auto_import]
                )
                if auto_import
                else None,
                auto_export_policy=fsx.CfnDataRepositoryAssociation.AutoExportPolicyProperty(
                    events=[event.upper() for event in auto_export]
                )
                if auto_export
                else None,
            ),
        )
        self.resource.apply_removal_policy(removal_policy)
        self.node.add_dependency(bucket)
        if before:
            self.node.add_dependency(before[-1].association)
        file_system.links.append(links[-1])

    @property
    def association_id(self) -> str:
        """The id, ``dra-…``."""
        return self.resource.attr_association_id

    @staticmethod
    def bucket_policy_statement(
        bucket: s3.IBucket, *, file_system_account: str, creating_role_arn: str
    ) -> iam.PolicyStatement:
        """What the policy of a bucket in another account says, so that a file system can be linked with it.

        The service-linked role is named by pattern: it exists only after the first association.

        Args:
            bucket: the bucket.
            file_system_account: the account of the file system.
            creating_role_arn: what creates the association: the CloudFormation execution role of the bootstrap stack.
        """
        # AWS Storage Blog, *Use Amazon FSx for Lustre to share Amazon S3 data across accounts*.
        pattern = f"arn:{cdk.Aws.PARTITION}:iam::{file_system_account}:role/{SERVICE_LINKED_ROLES}"
        return iam.PolicyStatement(
            sid="FsxDataRepositories",
            # The account, not everybody: S3 takes a policy for everybody under a pattern for public, and refuses it.
            principals=[iam.AccountPrincipal(file_system_account)],
            actions=[
                "s3:AbortMultipartUpload",
                "s3:DeleteObject",
                "s3:Get*",
                "s3:List*",
                "s3:PutBucketNotification",
                "s3:PutObject",
            ],
            resources=[bucket.bucket_arn, bucket.arn_for_objects("*")],
            conditions={"ArnLike": {"aws:PrincipalArn": [pattern, creating_role_arn]}},
        )


def _known(region: str) -> str | None:
    return None if cdk.Token.is_unresolved(region) else region


def _versioned(bucket: s3.IBucket) -> bool:
    """Whether a bucket is known to keep versions; of an imported one nobody knows."""
    child = bucket.node.default_child
    if not isinstance(child, s3.CfnBucket):
        return False
    configured = child.versioning_configuration
    return isinstance(configured, s3.CfnBucket.VersioningConfigurationProperty) and configured.status == "Enabled"
