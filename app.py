"""The CDK app; see stacks/fmblocks_stacks/app.py."""

from fmblocks_stacks.app import main

main()
