"""The CUDA engines. Importing them imports no PyCUDA and starts no CUDA."""
