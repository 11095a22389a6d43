"""Findings of other tools that stay, each with its reason. A row that matches nothing any more fails the test."""

from __future__ import annotations

# cdk-nag AwsSolutions: rule (as a pattern), construct path (as a pattern), reason.
NAG: tuple[tuple[str, str, str], ...] = (
    (
        r"AwsSolutions-IAM4\[.*:policy/AmazonEKSClusterPolicy\]",
        r"(Training|Inference)Stack/Kubernetes/Cluster/Role/Resource",
        "what EKS asks of the role of a control plane",
    ),
    (
        r"AwsSolutions-IAM4\[.*:policy/(AmazonEKSWorkerNodePolicy|AmazonEC2ContainerRegistryPullOnly|"
        r"AmazonSSMManagedInstanceCore)\]",
        r"(Training|Inference)Stack/Kubernetes/.*/NodeRole/Resource",
        "what EKS asks of the role of nodes, and Session Manager's own policy; AWS extends them when nodes need more",
    ),
    (
        r"AwsSolutions-IAM4\[.*:policy/AmazonEKS_CNI_Policy\]",
        r"(Training|Inference)Stack/Kubernetes/Cluster/AddOn-vpc-cni/Role/Resource",
        "what the VPC CNI asks for; it is the pods' here, not the nodes'",
    ),
    (
        r"AwsSolutions-IAM4\[.*:policy/(service-role/AWSLambda(Basic|VPCAccess)ExecutionRole|"
        r"AmazonEC2ContainerRegistryReadOnly|AmazonElasticContainerRegistryPublicReadOnly.*)\]",
        r"(Training|Inference)Stack/(Kubernetes/Cluster|Access)/KubectlProvider/.*/ServiceRole/Resource",
        "CDK's own kubectl function: it runs in the VPC and pulls charts from registries",
    ),
    (
        r"AwsSolutions-L1",
        r"(Training|Inference)Stack/(Kubernetes/Cluster|Access)/KubectlProvider/Handler/Resource",
        "CDK chooses the runtime of its kubectl function",
    ),
    (
        r"AwsSolutions-IAM5\[Resource::\*\]",
        r"(Training|Inference)Stack/Kubernetes/Cluster/AddOn-aws-fsx-csi-driver/Role/DefaultPolicy/Resource",
        "fsx:DescribeFileSystems takes no resource",
    ),
    (
        r"AwsSolutions-IAM5\[Resource::arn:.*:s3:::<.*bucketname.*>/\*\]",
        r"(Training|Inference)Stack/Kubernetes/Cluster/AddOn-aws-mountpoint-s3-csi-driver/Role/DefaultPolicy/Resource",
        "objects of the buckets that the project's file system is linked with",
    ),
    (
        r"AwsSolutions-IAM5\[Resource::(\*|arn:.*:(ec2|iam):.*/\*|arn:.*:ssm:.*::parameter/aws/service/\*)\]",
        r"(Training|Inference)Stack/Kubernetes/Karpenter/Role/DefaultPolicy/Resource",
        "Karpenter's own policy: what it starts has no id before, and is bound to the cluster by its tag",
    ),
    (
        r"AwsSolutions-SQS3",
        r"(Training|Inference)Stack/Kubernetes/Karpenter/Interruptions/Resource",
        "a notice of an interruption is worth nothing two minutes later",
    ),
    (
        r"AwsSolutions-IAM4\[.*:policy/(AWSPCSComputeNodePolicy|AmazonSSMManagedInstanceCore)\]",
        r"TrainingStack/Pcs/Group-.*/Template/Role/Resource",
        "what PCS asks of the role of nodes, and Session Manager's own policy",
    ),
    (
        r"AwsSolutions-IAM4\[.*:policy/AmazonSSMManagedInstanceCore\]",
        r"TrainingStack/Group-.*/Template/Role/Resource",
        "Session Manager's own policy: AWS extends it when the agent needs more",
    ),
    (
        r"AwsSolutions-AS3",
        r"TrainingStack/Group-.*/Fleet/Resource",
        "nothing scales the fleet but its schedule; node events are alarms of a later version",
    ),
    (
        r"AwsSolutions-IAM4\[.*:policy/AmazonSageMakerClusterInstanceRolePolicy\]",
        r"(Training|Inference)Stack/(Cluster|Kubernetes/HyperPod)/(Execution|Controller)Role/Resource",
        "the HyperPod guide requires this policy; AWS extends it when nodes need more",
    ),
    (
        r"AwsSolutions-IAM4\[.*:policy/service-role/AWSLambdaBasicExecutionRole\]",
        r"(FoundationStack/Network/DefaultGroup|TrainingStack/LifecycleScripts/|(Training|Inference)Stack/Kubernetes/Ready/)"
        r".*/ServiceRole/Resource",
        "the function's log group, nothing else; CDK's own default for every function",
    ),
    (
        r"AwsSolutions-IAM5\[Resource::arn:.*:fsx:.*:task/\*\]",
        r"FoundationStack/LustreRelease/Role/DefaultPolicy/Resource",
        "tasks have no id before they run",
    ),
    (
        r"AwsSolutions-IAM5\[Resource::\*\]",
        r"FoundationStack/Network/DefaultGroupLock/ServiceRole/DefaultPolicy/Resource",
        "ec2:DescribeSecurityGroupRules takes no resource",
    ),
    (
        r"AwsSolutions-IAM5\[Resource::\*\]",
        r"(Training|Inference)Stack/(Cluster|Kubernetes/HyperPod)/(Execution|Controller)Role/DefaultPolicy/Resource",
        "ec2:Describe…, fsx:DescribeFileSystems and ecr:GetAuthorizationToken take no resource",
    ),
    (
        r"AwsSolutions-IAM5\[Resource::arn:.*:(network-interface/\*|instance/\*|subnet/<.*>|security-group/<.*>)\]",
        r"(Training|Inference)Stack/(Cluster|Kubernetes/HyperPod)/(Execution|Controller)Role/DefaultPolicy/Resource",
        "HyperPod makes the interfaces of its nodes itself; nodes and shared subnets belong to other accounts",
    ),
    (
        r"AwsSolutions-IAM5\[Resource::<.*\.Arn>:\*\]",
        r".*/(framework-(onEvent|isComplete|onTimeout)/ServiceRole|waiter-state-machine/Role)/DefaultPolicy/Resource",
        "CDK's provider framework invokes any version of the one function it stands for",
    ),
    (
        r"AwsSolutions-IAM5\[Resource::arn:.*:s3:::cdk-.*/\*\.zip\]",
        r"TrainingStack/LifecycleScripts/Unpack/ServiceRole/DefaultPolicy/Resource",
        "archives of CDK's own bucket: a grant for one alone would lag behind each new one",
    ),
    (
        r"AwsSolutions-IAM5\[Resource::arn:.*:s3:::<.*bucketlifecyclename.*>/\*\]",
        r"TrainingStack/(Cluster/(Execution|Controller)Role|LifecycleScripts/Unpack/ServiceRole)/DefaultPolicy/Resource",
        "objects of the lifecycle bucket: prefixes are named after content, and old ones stay readable",
    ),
    (
        r"AwsSolutions-IAM5\[Resource::arn:.*:ecr:\*:\*:repository/\*\]",
        r"(Training|Inference)Stack/Kubernetes/HyperPod/ExecutionRole/DefaultPolicy/Resource",
        "images of AWS's accounts and of your own: the nodes pull what pods name",
    ),
    (
        r"AwsSolutions-IAM4\[.*:policy/AmazonSageMakerHyperPodTrainingOperatorAccess\]",
        r"(Training|Inference)Stack/Kubernetes/AddOns/AddOn-training_operator/Role/Resource",
        "what the operator asks for; AWS extends it when the operator needs more",
    ),
    (
        r"AwsSolutions-IAM5\[(Action::s3:.*\*|Resource::arn:.*:s3:::cdk-.*/\*)\]",
        r"(Training|Inference)Stack/(Kubernetes/Cluster|Access)/KubectlProvider/Handler/ServiceRole/DefaultPolicy/Resource",
        "CDK's own grant on its own bucket, for a chart that is an asset",
    ),
    (
        r"AwsSolutions-IAM5\[Resource::arn:.*:log-group:/aws/sagemaker/Clusters/\*\]",
        r"(Training|Inference)Stack/Kubernetes/AddOns/AddOn-observability/Role/DefaultPolicy/Resource",
        "HyperPod names the log group after a cluster that is not made yet",
    ),
    (
        r"AwsSolutions-IAM5\[Resource::arn:.*:sagemaker:.*:cluster/\*\]",
        r"(Training|Inference)Stack/Kubernetes/(Cluster/AddOn-vpc-cni/Role|HyperPod/ClusterRole)/DefaultPolicy/Resource",
        "the cluster needs both roles before it has an ARN",
    ),
    (
        r"AwsSolutions-SF[12]",
        r"(Training|Inference)Stack/Kubernetes/Ready/ResourceProvider/waiter-state-machine/Resource",
        "CDK's waiter: it asks one function once a minute, whose log says the same",
    ),
    (
        r"AwsSolutions-IAM5\[Resource::arn:.*:ssm:\*:\*:session/<aws:userid>-\*\]",
        r"(Training|Inference)Stack/(Kubernetes/)?Access/(Users|Admins)/Resource",
        "a person's own sessions, as Systems Manager shows it",
    ),
    (
        r"AwsSolutions-IAM4\[.*:policy/AmazonSageMakerHyperPodInferenceAccess\]",
        r"InferenceStack/Serving/Operator/ExecutionRole/Resource",
        "what the operator asks for; AWS extends it when the operator needs more",
    ),
    (
        r"AwsSolutions-IAM5\[Resource::(\*|arn:.*:(iam|ec2|elasticloadbalancing):.*/\*)\]",
        r"InferenceStack/Serving/Operator/LoadBalancerRole/DefaultPolicy/Resource",
        "load balancers, their groups and listeners are made by the controller, which knows its own by a tag",
    ),
    (
        r"AwsSolutions-IAM4\[.*:policy/service-role/AWSLambdaBasicExecutionRole\]",
        r"InferenceStack/Certificates/.*/ServiceRole/Resource",
        "the function's log group, nothing else; CDK's own default for every function",
    ),
    (
        r"AwsSolutions-IAM5\[Resource::<Certificates.*\.Arn>/\*\]",
        r"InferenceStack/Certificates/Empty/ServiceRole/DefaultPolicy/Resource",
        "every object of the bucket that goes",
    ),
    (
        r"AwsSolutions-S1",
        r"InferenceStack/Certificates/Resource",
        "certificates that the operator makes again; the bucket goes with the stack, which logs would outlive",
    ),
    (
        r"AwsSolutions-IAM5\[Resource::\*\]",
        r"InferenceStack/Serving/Operator/ScalerRole/DefaultPolicy/Resource",
        "reading metrics of CloudWatch takes no resource",
    ),
    (
        r"AwsSolutions-IAM5\[Resource::arn:.*:s3:::<.*bucketmodelsname.*>/.*/\*\]",
        r"InferenceStack/Serving/Endpoint-.*/Role/DefaultPolicy/Resource",
        "the files of one version of one model",
    ),
    (
        r"AwsSolutions-RDS(6|10|11|14)",
        r"FoundationStack/Accounting/Cluster/Resource",
        "Slurm knows no IAM authentication; the policies of the stack protect it, where a first creation that fails "
        "has to be cleaned up; only nodes reach the port; backups go back to a point in time",
    ),
    (
        r"AwsSolutions-SMG4",
        r"FoundationStack/Accounting/Cluster/Secret/Resource",
        "when HyperPod reads a new password is not documented: a rotation would stop the accounting",
    ),
)

# cfn-lint: rule, pattern of the message, reason.
LINT: tuple[tuple[str, str, str], ...] = (
    ("W3010", r"Avoid hardcoding availability zones", "zones are named by whoever writes the project"),
    (
        "E3628",
        r"'trn2.48xlarge' is not one of",
        "price data misses types that are sold as Capacity Blocks, rule REG-01",
    ),
    ("W3005", r"dependency already enforced", "CDK depends on whole constructs; the doubled DependsOn does no harm"),
)
