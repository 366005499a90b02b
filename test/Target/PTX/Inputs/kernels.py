# Part of Attune, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Kernels by hand for the interpreter of PTX, which the first argument names."""
import ctypes
import sys

CUDA = ctypes.CDLL(sys.argv[1])
HEAD = ".version 7.0\n.target sm_80\n.address_size 64\n"


def kernel(name, params, body, extra=""):
    parameters = ",\n".join(f".param .u64 {name}_{i}" for i in range(params))
    loads = "".join(f"ld.param.b64 %rd{i}, [{name}_{i}];\n"
                    for i in range(params))
    return (f"{HEAD}{extra}.visible .entry {name}({parameters})\n{{\n"
            ".reg .pred %p<9>; .reg .b16 %rs<9>; .reg .b32 %r<99>;"
            " .reg .b64 %rd<99>;\nmov.u32 %r0, %tid.x;\n"
            f"{loads}{body}\nret;\n}}\n")


def load(text):
    module = ctypes.c_void_p()
    status = CUDA.cuModuleLoadData(ctypes.byref(module), text.encode())
    return status, module


def launch(name, text, threads, buffers, together=0):
    """Copies the buffers there and back; the status of the wait. With `together`
    so many blocks may wait for each other."""
    status, module = load(text)
    assert status == 0, status
    function = ctypes.c_void_p()
    assert CUDA.cuModuleGetFunction(ctypes.byref(function), module,
                                    name.encode()) == 0
    addresses = []
    for data in buffers:
        address = ctypes.c_uint64()
        assert CUDA.cuMemAlloc_v2(ctypes.byref(address),
                                  ctypes.c_size_t(len(data))) == 0
        CUDA.cuMemcpyHtoDAsync_v2(address, bytes(data),
                                  ctypes.c_size_t(len(data)), None)
        addresses.append(address)
    params = (ctypes.c_void_p * len(addresses))(
        *[ctypes.addressof(address) for address in addresses])
    if together:
        assert CUDA.cuLaunchCooperativeKernel(
            function, together, 1, 1, threads, 1, 1, 0, None, params) == 0
    else:
        assert CUDA.cuLaunchKernel(function, 1, 1, 1, threads, 1, 1, 0, None,
                                   params, None) == 0
    results = []
    for data, address in zip(buffers, addresses):
        back = ctypes.create_string_buffer(len(data))
        CUDA.cuMemcpyDtoHAsync_v2(back, address, ctypes.c_size_t(len(data)),
                                  None)
        results.append(back.raw)
    return CUDA.cuStreamSynchronize(None), results


def report(name, good):
    print(("PASS " if good else "FAIL ") + name, flush=True)


CUDA.cuInit(0)
