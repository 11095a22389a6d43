#!/usr/bin/env bash
# HyperPod starts this on a controller node once it has set the node up.
exec bash "$(dirname "${BASH_SOURCE[0]}")/setup.sh" controller
