# Toolchain: 64-bit ARM Linux from another machine (Debian: g++-12-aarch64-linux-gnu, qemu-user, googletest).
# Only the modules without outside libraries are built (src/CMakeLists.txt); tests run under qemu-aarch64.
set(CMAKE_SYSTEM_NAME Linux)
set(CMAKE_SYSTEM_PROCESSOR aarch64)

find_program(KZ_AARCH64_CC NAMES aarch64-linux-gnu-gcc-12 aarch64-linux-gnu-gcc REQUIRED)
find_program(KZ_AARCH64_CXX NAMES aarch64-linux-gnu-g++-12 aarch64-linux-gnu-g++ REQUIRED)
set(CMAKE_C_COMPILER ${KZ_AARCH64_CC})
set(CMAKE_CXX_COMPILER ${KZ_AARCH64_CXX})

# -L: where the target's dynamic loader and libraries lie on a Debian machine.
find_program(KZ_QEMU_AARCH64 NAMES qemu-aarch64 qemu-aarch64-static REQUIRED)
set(CMAKE_CROSSCOMPILING_EMULATOR ${KZ_QEMU_AARCH64};-cpu;max;-L;/usr/aarch64-linux-gnu)

set(CMAKE_FIND_ROOT_PATH /usr/aarch64-linux-gnu)
set(CMAKE_FIND_ROOT_PATH_MODE_PROGRAM NEVER)
set(CMAKE_FIND_ROOT_PATH_MODE_LIBRARY ONLY)
set(CMAKE_FIND_ROOT_PATH_MODE_INCLUDE ONLY)
set(CMAKE_FIND_ROOT_PATH_MODE_PACKAGE ONLY)
