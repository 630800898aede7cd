# GoogleTest as GTest::gtest and GTest::gtest_main: the installed one, or, for another processor, built from the
# sources that Debian's package googletest lays down.
if(NOT CMAKE_CROSSCOMPILING)
  find_package(GTest REQUIRED)
  return()
endif()

set(KZ_GTEST_SOURCE /usr/src/googletest CACHE PATH "Sources of GoogleTest, used when cross-compiling")
if(NOT EXISTS ${KZ_GTEST_SOURCE}/CMakeLists.txt)
  message(FATAL_ERROR "GoogleTest's sources are not at ${KZ_GTEST_SOURCE}: install the package googletest, "
    "set KZ_GTEST_SOURCE, or build without tests (-DKZ_TESTS=OFF)")
endif()
set(BUILD_GMOCK OFF CACHE BOOL "" FORCE)
set(INSTALL_GTEST OFF CACHE BOOL "" FORCE)
add_subdirectory(${KZ_GTEST_SOURCE} ${CMAKE_BINARY_DIR}/googletest EXCLUDE_FROM_ALL)
foreach(target gtest gtest_main)
  if(NOT TARGET GTest::${target})
    add_library(GTest::${target} ALIAS ${target})
  endif()
endforeach()

# The warnings of a foreign source are not ours to mend.
foreach(target gtest gtest_main)
  target_compile_options(${target} PRIVATE -w)
endforeach()
