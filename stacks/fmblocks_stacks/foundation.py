"""FoundationStack: what lives as long as the data."""

from __future__ import annotations

from collections.abc import Sequence
from urllib.parse import quote

import aws_cdk as cdk
from aws_cdk import aws_cloudwatch as cloudwatch
from aws_cdk import aws_cloudwatch_actions as actions
from aws_cdk import aws_ec2 as ec2
from aws_cdk import aws_logs as logs
from aws_cdk import aws_s3 as s3
from aws_cdk import aws_sns as sns
from constructs import Construct

from fmblocks._stack_id import end_of_stack_id
from fmblocks.governance.project_key import ProjectKey
from fmblocks.network.addresses import ZoneAddresses
from fmblocks.network.cluster_vpc import ClusterVpc, IClusterVpc, PrivateSubnet
from fmblocks.network.efa_security_group import EfaSecurityGroup
from fmblocks.network.settings import ExistingVpc, Network
from fmblocks.observability.alert_topic import AlertTopic
from fmblocks.observability.metrics_workspace import MetricsWorkspace
from fmblocks.observability.settings import Alerts
from fmblocks.project import Project
from fmblocks.storage.data_bucket import DataBucket, LogBucket
from fmblocks.storage.data_repository_association import DataRepositoryAssociation
from fmblocks.storage.lustre_alarms import BYTES_PER_GIB, LustreAlarms
from fmblocks.storage.lustre_file_system import ILustreFileSystem, LustreFileSystem
from fmblocks.storage.lustre_ports import LUSTRE_PORTS
from fmblocks.storage.lustre_security_group import LustreSecurityGroup
from fmblocks.storage.model_store import ModelStore
from fmblocks.storage.open_zfs_file_system import OpenZfsFileSystem
from fmblocks.storage.open_zfs_security_group import OpenZfsSecurityGroup
from fmblocks.storage.settings import AccountingDatabase, Buckets, ExistingLustre, Home, Lustre, LustreLogLevel
from fmblocks_stacks.contract import Publisher

_KEPT = cdk.RemovalPolicy.RETAIN_ON_UPDATE_OR_DELETE


class FoundationStack(cdk.Stack):
    """Network, groups, key, buckets, Lustre with its S3 links, and the metrics workspace of a project.

    Under termination protection. When it goes nevertheless, data stays, with the key and the network it stands on;
    a failed first creation leaves none of them.
    """

    def __init__(
        self, scope: Construct, id: str, *, project: Project, stack_name: str, env: cdk.Environment | None = None
    ) -> None:
        super().__init__(
            scope,
            id,
            stack_name=stack_name,
            env=env,
            termination_protection=True,
            description=f"{project.name}: network, storage and metrics that outlive its clusters (fmblocks)",
        )
        self.node.set_context("fmblocks:suppress", sorted(project.suppressed))
        self._publisher = Publisher(self, "Contract", foundation=project.name)
        self.key = ProjectKey(self, "Key")
        database = project.storage.accounting_database
        self.network = self._network(project.network, [other_zone(project, database)] if database else [])
        self.efa_security_group = self._efa_group(project.network)
        self.logs = LogBucket(self, "Logs")
        self.lifecycle_bucket = self._lifecycle_bucket(project)
        self.metrics = MetricsWorkspace(self, "Metrics", retention_days=project.observability.prometheus.retention_days)
        self._publish("key-arn", self.key.key_arn, "KMS key of the project's data")
        self._publish("efa-security-group-id", self.efa_security_group.security_group_id, "group of the EFA fabric")
        self._publish("metrics/workspace-arn", self.metrics.workspace_arn, "Managed Prometheus workspace")
        self._publish("metrics/endpoint", self.metrics.prometheus_endpoint, "Managed Prometheus endpoint")
        cdk.CfnOutput(self, "MetricsEndpoint", value=self.metrics.prometheus_endpoint)
        self.alert_topic = self._alert_topic(project.observability.alerts)
        if project.storage.model_store is not None:
            self.model_store = self._model_store(project.storage.buckets)
        if (lustre := project.linked_lustre) is not None:
            self.lustre = self._lustre(lustre, project)
        if project.storage.home is not None:
            self.home = self._home(project.storage.home)
        if (accounting := project.storage.accounting_database) is not None:
            self._accounting(accounting, other_zone(project, accounting))

    def _network(self, settings: Network, kept: Sequence[str]) -> IClusterVpc:
        network = self._imported_vpc(settings, settings.vpc) if settings.vpc else self._vpc(settings, kept)
        self._publish("vpc-id", network.vpc.vpc_id, "VPC")
        self._publish("vpc-cidr", settings.ipv4_range, "IPv4 range of the VPC")
        for zone in network.availability_zones:
            self._publish(f"subnet/{zone}", network.private_subnet(zone).subnet_id, f"private subnet of {zone}")
            self._publish(f"route-table/{zone}", network.private_route_table_id(zone), f"route table of {zone}")
            if (name := network.zone_name(zone)) is not None:
                self._publish(f"zone-name/{zone}", name, f"name of {zone} in this account")
        return network

    def _imported_vpc(self, settings: Network, vpc: ExistingVpc) -> IClusterVpc:
        return ClusterVpc.from_cluster_vpc_attributes(
            self,
            "Network",
            vpc_id=vpc.id,
            cidr=vpc.cidr,
            private_subnets={
                one.availability_zone: PrivateSubnet(subnet_id=one.id, cidr=one.cidr, route_table_id=one.route_table_id)
                for one in vpc.private_subnets
            },
            primary_availability_zone=settings.primary_availability_zone,
        )

    def _vpc(self, settings: Network, kept: Sequence[str]) -> ClusterVpc:
        return ClusterVpc(
            self,
            "Network",
            cidr=settings.cidr,
            availability_zones=settings.zones,
            primary_availability_zone=settings.primary_availability_zone,
            nat_gateways=settings.nat_gateways,
            interface_endpoints=settings.endpoint_services,
            endpoint_availability_zones=settings.endpoint_availability_zones,
            subnets={
                zone: ZoneAddresses(private=pair.private, public=pair.public) for zone, pair in settings.subnets.items()
            },
            kms_key=self.key,
            kept_availability_zones=kept,
        )

    def _efa_group(self, settings: Network) -> ec2.ISecurityGroup:
        if settings.vpc is not None and settings.vpc.efa_security_group_id is not None:
            return ec2.SecurityGroup.from_security_group_id(
                self, "EfaGroup", settings.vpc.efa_security_group_id, mutable=False
            )
        return EfaSecurityGroup(
            self,
            "EfaGroup",
            vpc=self.network.vpc,
            allow_all_outbound=not self.network.closed,
            removal_policy=_KEPT,
        )

    def _lifecycle_bucket(self, project: Project) -> DataBucket:
        # HyperPod's managed policy reads buckets that begin "sagemaker-" only.
        name = f"sagemaker-{project.name}-{self._unique()}"
        return self._bucket("LifecycleBucket", "bucket/lifecycle", bucket_name=name)

    def _unique(self) -> str:
        """A fixed name would collide between accounts; the end of the stack's id does not.

        A stack that is created again gets another one.
        """
        return end_of_stack_id(self)

    def _model_store(self, settings: Buckets) -> ModelStore:
        store = ModelStore(
            self,
            "ModelStore",
            encryption_key=self.key,
            server_access_logs_bucket=self.logs,
            noncurrent_version_expiration=cdk.Duration.days(settings.noncurrent_version_days),
        )
        self._publish("bucket/models/name", store.bucket.bucket_name, "bucket of the model store")
        self._publish("bucket/models/key-arn", self.key.key_arn, "KMS key of the bucket of the model store")
        cdk.CfnOutput(self, "ModelStoreBucket", value=store.bucket.bucket_name)
        return store

    def _bucket(
        self, id: str, parameter: str, *, bucket_name: str | None = None, settings: Buckets | None = None
    ) -> DataBucket:
        tiering = settings.intelligent_tiering_after_days if settings else None
        bucket = DataBucket(
            self,
            id,
            encryption_key=self.key,
            server_access_logs_bucket=self.logs,
            intelligent_tiering_after=cdk.Duration.days(tiering) if tiering is not None else None,
            noncurrent_version_expiration=cdk.Duration.days(settings.noncurrent_version_days) if settings else None,
            bucket_name=bucket_name,
        )
        self._publish(f"{parameter}/name", bucket.bucket_name, f"bucket: {parameter}")
        self._publish(f"{parameter}/key-arn", self.key.key_arn, f"KMS key of the bucket: {parameter}")
        return bucket

    def _alert_topic(self, settings: Alerts | None) -> sns.ITopic | None:
        if settings is None:
            return None
        if settings.topic_arn is not None:
            return sns.Topic.from_topic_arn(self, "Alerts", settings.topic_arn)
        topic = AlertTopic(self, "Alerts", key=self.key, email=settings.email)
        self._publish("alerts/topic-arn", topic.topic_arn, "topic of alarms")
        return topic

    def _lustre(self, settings: Lustre, project: Project) -> ILustreFileSystem:
        if settings.existing is None:
            file_system, group = self._made_lustre(settings, project.name)
        else:
            file_system, group = self._existing_lustre(settings.existing, settings)
        store = project.storage.model_store
        links = self._links(settings, file_system, project.storage.buckets, store.lustre_path if store else None)
        if settings.release is not None:
            # Only here: the targets of EventBridge Scheduler import half of aws-cdk-lib.
            from aws_cdk import aws_scheduler as scheduler

            from fmblocks.storage.data_release_schedule import DataReleaseSchedule

            exported = {link.path for link in settings.exported}
            DataReleaseSchedule(
                self,
                "LustreRelease",
                associations=[one for one in links if one.link.path in exported],
                last_access=cdk.Duration.days(settings.release.days_since_last_access),
                schedule=scheduler.ScheduleExpression.expression(settings.release.schedule, cdk.TimeZone.ETC_UTC),
                alarm_topic=self.alert_topic,
            )
        LustreAlarms(
            self,
            "LustreAlarms",
            file_system=file_system,
            capacity_gib=settings.capacity_gib,
            export_age=cdk.Duration.hours(1) if settings.exported else None,
            import_age=cdk.Duration.days(1)
            if any(link.auto_import for link in settings.data_repository_associations)
            else None,
            alarm_topic=self.alert_topic,
        )
        for name, value, description in (
            ("file-system-id", file_system.file_system_id, "Lustre file system"),
            ("dns-name", file_system.dns_name, "DNS name of the Lustre file system"),
            ("mount-name", file_system.mount_name, "mount name of the Lustre file system"),
            ("security-group-id", group.security_group_id, "group of the Lustre file system"),
        ):
            self._publish(f"lustre/{name}", value, description)
        cdk.CfnOutput(self, "LustreDnsName", value=file_system.dns_name)
        cdk.CfnOutput(self, "LustreMountName", value=file_system.mount_name)
        return file_system

    def _existing_lustre(
        self, existing: ExistingLustre, settings: Lustre
    ) -> tuple[ILustreFileSystem, ec2.ISecurityGroup]:
        group = ec2.SecurityGroup.from_security_group_id(self, "LustreGroup", existing.security_group_id)
        file_system = LustreFileSystem.from_lustre_file_system_attributes(
            self,
            "Lustre",
            file_system_id=existing.file_system_id,
            dns_name=existing.dns_name,
            mount_name=existing.mount_name,
            security_group=group,
            efa_enabled=settings.efa_enabled,
        )
        # A group of the fabric that was there before is let in where the file system was made, and EC2 refuses the same
        # rule twice. One that is made here cannot have been.
        if isinstance(self.efa_security_group, EfaSecurityGroup):
            for first, last in LUSTRE_PORTS:
                file_system.connections.allow_from(
                    self.efa_security_group, ec2.Port.tcp_range(first, last), "Lustre LNET from the nodes"
                )
        return file_system, group

    def _made_lustre(self, settings: Lustre, project: str) -> tuple[ILustreFileSystem, ec2.ISecurityGroup]:
        group = LustreSecurityGroup(
            self,
            "LustreGroup",
            vpc=self.network.vpc,
            allow_all_outbound=not self.network.closed,
            clients={"Nodes": self.efa_security_group},
            removal_policy=_KEPT,
        )
        file_system = LustreFileSystem(
            self,
            "Lustre",
            vpc=self.network.vpc,
            vpc_subnet=self.network.primary_subnet,
            deployment_type=settings.deployment_type,
            storage_type=settings.storage_type,
            capacity_gib=settings.capacity_gib,
            throughput_mbps_per_tib=settings.throughput_mbps_per_tib,
            throughput_capacity_mbps=settings.throughput_capacity_mbps,
            read_cache_sizing_mode=settings.read_cache_sizing_mode,
            read_cache_size_gib=settings.read_cache_size_gib,
            drive_cache_type=settings.drive_cache_type,
            data_compression_type=settings.data_compression_type,
            automatic_backup_retention_days=settings.automatic_backup_retention_days,
            daily_automatic_backup_start_time=settings.daily_automatic_backup_start_time,
            copy_tags_to_backups=settings.copy_tags_to_backups,
            weekly_maintenance_start_time=settings.weekly_maintenance_start_time,
            efa_enabled=settings.efa_enabled,
            efa_security_group=self.efa_security_group,
            metadata_mode=settings.metadata_mode,
            metadata_iops=settings.metadata_iops,
            version=settings.version,
            backup_id=settings.backup_id,
            log_level=settings.logged,
            log_group=self._lustre_log(project) if settings.logged is not LustreLogLevel.DISABLED else None,
            security_group=group,
            kms_key=self.key if settings.deployment_type.persistent else None,
        )
        return file_system, group

    def _lustre_log(self, project: str) -> logs.LogGroup:
        return logs.LogGroup(
            self,
            "LustreLog",
            log_group_name=f"/aws/fsx/{project}",  # FSx wants the beginning of the name
            encryption_key=self.key,
            retention=logs.RetentionDays.THREE_MONTHS,
            removal_policy=cdk.RemovalPolicy.DESTROY,
        )

    def _links(
        self, settings: Lustre, file_system: ILustreFileSystem, buckets: Buckets, store_path: str | None
    ) -> list[DataRepositoryAssociation]:
        made = []
        links = Construct(self, "Links")
        for link in sorted(settings.data_repository_associations, key=lambda link: link.path):
            # Injective, so that /a/b and /a-b are two; / itself has the empty name, which no other path has.
            name = quote(link.path[1:], safe="") or "root directory"
            bucket: s3.IBucket
            if link.path == store_path:
                bucket = self.model_store.bucket
            elif link.bucket is None:
                bucket = self._bucket(f"Bucket-{name}", f"link{link.path.rstrip('/')}/bucket", settings=buckets)
            else:
                bucket = s3.Bucket.from_bucket_attributes(
                    links, f"Bucket-{name}", bucket_name=link.bucket, region=link.bucket_region
                )
            one = DataRepositoryAssociation(
                links,
                name,
                file_system=file_system,
                file_system_path=link.path,
                bucket=bucket,
                bucket_prefix=link.prefix,
                auto_import=link.auto_import,
                auto_export=link.auto_export,
                batch_import_metadata_on_create=link.batch_import_metadata_on_create,
                imported_file_chunk_size_mib=link.imported_file_chunk_size_mib,
                bucket_versioned=link.bucket_versioned or link.bucket is None,
            )
            made.append(one)
        return made

    def _home(self, settings: Home) -> OpenZfsFileSystem:
        group = OpenZfsSecurityGroup(
            self,
            "HomeGroup",
            vpc=self.network.vpc,
            clients={"Nodes": self.efa_security_group},
            removal_policy=_KEPT,
        )
        home = OpenZfsFileSystem(
            self,
            "Home",
            vpc=self.network.vpc,
            vpc_subnet=self.network.primary_subnet,
            capacity_gib=settings.capacity_gib,
            throughput_capacity_mbps=settings.throughput_capacity_mbps,
            deployment_type=settings.deployment_type,
            iops=settings.iops,
            data_compression_type=settings.data_compression_type,
            automatic_backup_retention_days=settings.automatic_backup_retention_days,
            daily_automatic_backup_start_time=settings.daily_automatic_backup_start_time,
            copy_tags_to_backups=settings.copy_tags_to_backups,
            weekly_maintenance_start_time=settings.weekly_maintenance_start_time,
            security_group=group,
            kms_key=self.key,
        )
        alarm = home.metric_used_storage_capacity().create_alarm(
            self,
            "HomeFull",
            # Where AWS sees performance go down: FSx for OpenZFS User Guide, *Performance*.
            threshold=settings.capacity_gib * BYTES_PER_GIB * 0.8,
            evaluation_periods=3,
            treat_missing_data=cloudwatch.TreatMissingData.IGNORE,
            alarm_description="Home directories are more than 80 % full",
        )
        if self.alert_topic is not None:
            alarm.add_alarm_action(actions.SnsAction(self.alert_topic))
        self._publish("home/file-system-id", home.file_system_id, "OpenZFS file system of home directories")
        self._publish("home/dns-name", home.dns_name, "DNS name of the home directories")
        self._publish("home/security-group-id", group.security_group_id, "group of the home directories")
        return home

    def _accounting(self, settings: AccountingDatabase, zone: str) -> None:
        # Only here: what it imports is for databases alone.
        from fmblocks.storage.accounting_database import AccountingDatabase as Database

        database = Database(
            self,
            "Accounting",
            vpc=self.network.vpc,
            vpc_subnets=[self.network.primary_subnet, self.network.private_subnet(zone)],
            kms_key=self.key,
            clients={"Nodes": self.efa_security_group},
            engine_version=settings.engine_version,
            min_capacity_acu=settings.min_capacity_acu,
            max_capacity_acu=settings.max_capacity_acu,
            backup_retention_days=settings.backup_retention_days,
        )
        self._publish("accounting/endpoint", database.endpoint, "host of the database of Slurm's accounting")
        self._publish("accounting/secret-arn", database.secret_arn, "secret of the database of Slurm's accounting")

    def _publish(self, name: str, value: str, description: str) -> None:
        self._publisher.publish(name, value, description)


def other_zone(project: Project, settings: AccountingDatabase) -> str:
    """Where the database of accounting stands beside the primary zone."""
    if settings.availability_zone is not None:
        return settings.availability_zone
    (other,) = [zone for zone in project.network.zones if zone != project.network.primary]
    return other
