"""FSx for Lustre, S3 and the links between them."""
