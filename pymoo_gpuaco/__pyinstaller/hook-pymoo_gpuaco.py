"""Modules that a frozen application needs beside the modules that static analysis sees."""

from PyInstaller.utils.hooks import collect_data_files, collect_dynamic_libs, copy_metadata

datas = [
    *collect_data_files("pymoo_gpuaco", excludes=["**/__pycache__"]),  # instances, kernels
    *copy_metadata("moocore"),  # whose import reads its version; pymoo imports it
]
binaries = collect_dynamic_libs("pymoo_gpuaco", search_patterns=["_compiled.so"])  # the CPU engine
hiddenimports = ["_cffi_backend"]  # of moocore's library
