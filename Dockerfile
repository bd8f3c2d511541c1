# ferrite, built and installed, with what programs that use it need to be compiled.
#
#   docker build -t ferrite .                                   CPU
#   docker build -t ferrite-cuda --build-arg VARIANT=cuda .     CPU and NVIDIA GPUs
#   docker run --rm ferrite                                     says what it found and tests every backend
#   docker run --rm --gpus all ferrite-cuda
#
# --build-arg NATIVE=ON compiles the CPU kernels for the machine that builds the image, and only for it;
# --build-arg ARCHS="86;90" names the GPUs to compile for.
ARG VARIANT=cpu

FROM ubuntu:24.04 AS base-cpu
ENV FERRITE_CUDA=OFF

# With cuDNN. NVIDIA removes old tags: any 13.x-cudnn-devel-ubuntu24.04 will do.
FROM nvidia/cuda:13.0.3-cudnn-devel-ubuntu24.04 AS base-cuda
ENV FERRITE_CUDA=ON

FROM base-${VARIANT}
WORKDIR /opt/ferrite
# The list of packages is in ./dev. As long as that does not change, Docker keeps them.
COPY dev .
RUN ./dev setup && rm -rf /var/lib/apt/lists/* /root/.cache
COPY . .
ARG NATIVE=OFF
ARG ARCHS=
# What ccache kept would stay in the image.
RUN export CCACHE_DISABLE=1 && \
    cmake --preset release -DFERRITE_CUDA=$FERRITE_CUDA -DFERRITE_CUDA_ARCHS="$ARCHS" -DFERRITE_NATIVE=$NATIVE \
          -DFERRITE_BUILD_TESTS=OFF -DFERRITE_BUILD_EXAMPLES=OFF && \
    cmake --build --preset release && \
    cmake --install build/release && \
    ldconfig && \
    rm -rf build
WORKDIR /work
CMD ["ferrite", "doctor"]
