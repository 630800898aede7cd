# kz_module(NAME [DEPS module...] [LIBS target...] [SKIP regex])
#
# One folder of src/ is one module: every *.cpp below it goes into the static library kz_NAME, and every
# *_test.cpp into the test program NAME_test (a test stands beside its source). DEPS are the modules that this
# one may include (scripts/check_layers holds the same table), LIBS are outside libraries; SKIP leaves files out.
function(kz_module NAME)
  cmake_parse_arguments(ARG "" "SKIP" "DEPS;LIBS" ${ARGN})
  file(GLOB_RECURSE all CONFIGURE_DEPENDS ${CMAKE_CURRENT_SOURCE_DIR}/*.cpp)
  if(ARG_SKIP)
    list(FILTER all EXCLUDE REGEX ${ARG_SKIP})
  endif()
  set(sources ${all})
  list(FILTER sources EXCLUDE REGEX "_test\\.cpp$")
  set(tests ${all})
  list(FILTER tests INCLUDE REGEX "_test\\.cpp$")
  list(TRANSFORM ARG_DEPS PREPEND kz_)

  if(NOT sources)  # headers only
    add_library(kz_${NAME} INTERFACE)
    target_link_libraries(kz_${NAME} INTERFACE kz_options ${ARG_DEPS})
    return()
  endif()
  add_library(kz_${NAME} STATIC ${sources})
  target_link_libraries(kz_${NAME} PUBLIC kz_options ${ARG_DEPS} PRIVATE ${ARG_LIBS})
  if(KZ_TESTS AND tests)
    kz_test(${NAME}_test SOURCES ${tests} LIBS kz_${NAME} ${ARG_LIBS})
  endif()
endfunction()

# kz_test(NAME SOURCES file... LIBS target... [LABELS label...]): one GoogleTest program, run by ctest as one test.
function(kz_test NAME)
  cmake_parse_arguments(ARG "" "" "SOURCES;LIBS;LABELS" ${ARGN})
  add_executable(${NAME} ${ARG_SOURCES})
  target_link_libraries(${NAME} PRIVATE kz_options ${ARG_LIBS} GTest::gtest GTest::gtest_main)
  target_compile_definitions(${NAME} PRIVATE
    KZ_SOURCE_DIR="${PROJECT_SOURCE_DIR}" KZ_TEST_DATA="${PROJECT_SOURCE_DIR}/tests/data")
  add_test(NAME ${NAME} COMMAND ${NAME} WORKING_DIRECTORY ${CMAKE_BINARY_DIR})
  set_tests_properties(${NAME} PROPERTIES TIMEOUT 900)
  if(ARG_LABELS)
    set_tests_properties(${NAME} PROPERTIES LABELS "${ARG_LABELS}")
  endif()
endfunction()
