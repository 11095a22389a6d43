"""Code that runs in AWS Lambda: standard library and boto3 only."""
