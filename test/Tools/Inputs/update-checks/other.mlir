// RUN: attune-opt %s -o /dev/null
