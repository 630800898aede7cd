# Compiler options that every target of the project shares (target kz_options).
add_library(kz_options INTERFACE)
target_compile_options(kz_options INTERFACE
  -Wall -Wextra -Wpedantic -Wshadow -Wnon-virtual-dtor -Werror
  # A fused multiply-add changes bits between machines: fusing is written out where it is wanted.
  -ffp-contract=off -fno-math-errno)
target_include_directories(kz_options INTERFACE ${PROJECT_SOURCE_DIR}/include ${PROJECT_SOURCE_DIR}/src)
find_package(Threads REQUIRED)
target_link_libraries(kz_options INTERFACE Threads::Threads)

if(KZ_SANITIZE)
  target_compile_options(kz_options INTERFACE -fsanitize=${KZ_SANITIZE} -fno-sanitize-recover=all -fno-omit-frame-pointer -g)
  target_link_options(kz_options INTERFACE -fsanitize=${KZ_SANITIZE})
  target_compile_definitions(kz_options INTERFACE KZ_SANITIZED)  # for tests that measure memory
endif()

if(KZ_FUZZ AND CMAKE_CXX_COMPILER_ID MATCHES "Clang")
  # The fuzzer steers by the branches that the library takes, so the library counts them.
  target_compile_options(kz_options INTERFACE -fsanitize=fuzzer-no-link)
  target_link_options(kz_options INTERFACE -fsanitize=fuzzer-no-link)
endif()
