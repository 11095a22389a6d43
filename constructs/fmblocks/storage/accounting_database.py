"""The database of Slurm's accounting: jobs, accounts and users, kept beyond a cluster."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Protocol, cast

import aws_cdk as cdk
from aws_cdk import aws_ec2 as ec2
from aws_cdk import aws_iam as iam
from aws_cdk import aws_kms as kms
from aws_cdk import aws_rds as rds
from aws_cdk import aws_secretsmanager as secretsmanager
from constructs import Construct

from fmblocks._edge import check_arguments, public_among, typed, zone_of
from fmblocks.network import rules as network_rules  # noqa: F401  registers NET-05
from fmblocks.storage import rules
from fmblocks.storage.settings import DEFAULT_ENGINE_VERSION
from fmblocks.storage.settings import AccountingDatabase as Settings

_PORT = 3306
# slurm.conf and slurmdbd.conf know no quoting: what would end a value, or begin a comment, stays out of the password.
_NOT_IN_PASSWORDS = "\"'#@/\\ `$&;=%"


class IAccountingDatabase(Protocol):
    """A MySQL database for Slurm's accounting, made here or elsewhere."""

    @property
    def endpoint(self) -> str: ...
    @property
    def port(self) -> int: ...
    @property
    def secret_arn(self) -> str: ...
    def grant_read_secret(self, grantee: iam.IGrantable) -> iam.Grant: ...


class AccountingDatabase(cdk.Resource):
    """Aurora MySQL Serverless v2 with a user of its own, whose name and password are a secret.

    HyperPod connects Slurm's database daemon to it, with continuous provisioning only (rule FMB-109); each cluster has
    a schema named after itself. Encrypted, backed up, kept when the stack goes. The daemon holds connections, so it
    never pauses.

    In place: capacity, backups, version (upwards). Replaces: subnets, key, security group.

    Args:
        vpc: of the subnets.
        vpc_subnets: private subnets in two zones at least.
        kms_key: encrypts database and secret.
        clients: groups of the nodes that connect, by a name that becomes part of the rules' ids. A
            :class:`~fmblocks.HyperPodSlurmCluster` of the same app adds its own.
        engine_version: of Aurora MySQL, ``8.0.mysql_aurora.3.x.y``. Default: one that AWS lists at this release.
        min_capacity_acu: 0.5 to 256, in steps of 0.5. Default: 0.5.
        max_capacity_acu: as much or more. Default: 4.
        backup_retention_days: 1 to 35. Default: 7.
        removal_policy: of database, secret, subnet group and security group. Default: RETAIN_ON_UPDATE_OR_DELETE.

    Attributes:
        cluster: the database.
        security_group: with the doors of ``clients``.

    Raises:
        FindingsError: rules FMB-110, NET-05.
    """

    @typed
    def __init__(
        self,
        scope: Construct,
        id: str,
        *,
        vpc: ec2.IVpc,
        vpc_subnets: Sequence[ec2.ISubnet],
        kms_key: kms.IKey,
        clients: Mapping[str, ec2.ISecurityGroup] | None = None,
        engine_version: str = DEFAULT_ENGINE_VERSION,
        min_capacity_acu: float = 0.5,
        max_capacity_acu: float = 4.0,
        backup_retention_days: int = 7,
        removal_policy: cdk.RemovalPolicy = cdk.RemovalPolicy.RETAIN_ON_UPDATE_OR_DELETE,
    ) -> None:
        super().__init__(scope, id)
        told = Settings.model_construct(
            engine_version=engine_version,
            min_capacity_acu=min_capacity_acu,
            max_capacity_acu=max_capacity_acu,
            backup_retention_days=backup_retention_days,
        )
        check_arguments(
            self,
            (*rules.ACCOUNTING, "NET-05"),
            {
                "accounting_database": told,
                # Zones that nobody told count as different ones: it is the number that RDS asks for.
                "zones": [zone_of(subnet) or f"subnet {at}" for at, subnet in enumerate(vpc_subnets)],
                "public_subnets": public_among(vpc_subnets, vpc),
            },
            names={"accounting_database": "database", "public_subnets": "vpc_subnets"},
        )
        self._key = kms_key
        self.security_group = ec2.SecurityGroup(
            self, "Group", vpc=vpc, description="MySQL from the nodes of Slurm", allow_all_outbound=False
        )
        self._clients: list[ec2.ISecurityGroup] = []
        for name, group in (clients or {}).items():
            self.add_client(name, group)
        major = engine_version.split(".mysql_aurora", 1)[0]
        self.cluster = rds.DatabaseCluster(
            self,
            "Cluster",
            engine=rds.DatabaseClusterEngine.aurora_mysql(
                version=rds.AuroraMysqlEngineVersion.of(engine_version, major)
            ),
            writer=rds.ClusterInstance.serverless_v2("Writer"),
            vpc=vpc,
            vpc_subnets=ec2.SubnetSelection(subnets=list(vpc_subnets)),
            security_groups=[self.security_group],
            serverless_v2_min_capacity=min_capacity_acu,
            serverless_v2_max_capacity=max_capacity_acu,
            credentials=rds.Credentials.from_generated_secret(
                "slurm", encryption_key=kms_key, exclude_characters=_NOT_IN_PASSWORDS
            ),
            # Slurm documentation, *Accounting and Resource Limits*: the default of 50 s ends long clean-ups half done.
            parameters={"innodb_lock_wait_timeout": "900"},
            backup=rds.BackupProps(retention=cdk.Duration.days(backup_retention_days)),
            storage_encrypted=True,
            storage_encryption_key=kms_key,
            copy_tags_to_snapshot=True,
            # A first creation that fails could not be cleaned up otherwise; what is made once is kept by its policy.
            deletion_protection=False,
            removal_policy=removal_policy,
        )
        cdk.RemovalPolicies.of(self).apply(removal_policy)
        secret = self.cluster.secret
        assert secret is not None
        self._secret: secretsmanager.ISecret = secret

    def add_client(self, name: str, group: ec2.ISecurityGroup, *, scope: Construct | None = None) -> None:
        """Let nodes of ``group`` connect; once for each group, since EC2 refuses a rule that is there.

        Args:
            name: becomes part of the rule's id.
            group: of the nodes.
            scope: of the rule. Default: the security group.
        """
        if group.security_group_id in [one.security_group_id for one in self._clients]:
            return
        self._clients.append(group)
        ec2.CfnSecurityGroupIngress(
            scope or self.security_group,
            f"{name}MySql",
            group_id=self.security_group.security_group_id,
            source_security_group_id=group.security_group_id,
            ip_protocol="tcp",
            from_port=_PORT,
            to_port=_PORT,
            description=f"MySQL from {name}",
        )

    @property
    def endpoint(self) -> str:
        """The host name that writers connect to."""
        return self.cluster.cluster_endpoint.hostname

    @property
    def port(self) -> int:
        """The port."""
        return _PORT

    @property
    def secret_arn(self) -> str:
        """The secret: JSON with username and password, among others."""
        return self._secret.secret_arn

    def grant_read_secret(self, grantee: iam.IGrantable) -> iam.Grant:
        """Let ``grantee`` read name and password."""
        return self._secret.grant_read(grantee)

    @staticmethod
    def from_accounting_database_attributes(
        scope: Construct, id: str, *, endpoint: str, secret_arn: str, kms_key: kms.IKey | None = None, port: int = _PORT
    ) -> IAccountingDatabase:
        """A database that was made elsewhere. Nothing is created, nothing is checked.

        Args:
            endpoint: host name.
            secret_arn: of a secret with username and password, as JSON.
            kms_key: what it is encrypted with. Default: the account's own key for secrets.
            port: default 3306.
        """
        return _Imported(scope, id, endpoint, secret_arn, kms_key, port)


class _Imported(cdk.Resource):
    def __init__(
        self, scope: Construct, id: str, endpoint: str, secret_arn: str, kms_key: kms.IKey | None, port: int
    ) -> None:
        super().__init__(scope, id)
        self.endpoint, self.port, self.secret_arn = endpoint, port, secret_arn
        self._secret = secretsmanager.Secret.from_secret_attributes(
            self, "Secret", secret_complete_arn=secret_arn, encryption_key=cast(kms.IKey, kms_key)
        )

    def grant_read_secret(self, grantee: iam.IGrantable) -> iam.Grant:
        return self._secret.grant_read(grantee)
