"""The files that a frozen application needs beside the modules: shipped instances and kernels."""

from PyInstaller.utils.hooks import collect_data_files

datas = [
    *collect_data_files("pymoo_gpuaco", excludes=["**/__pycache__"]),
    *collect_data_files("pymoo_gpuaco.cuda_src"),
]
