#include "apps/cli/process.h"
#include "apps/cli/program.h"

#include <string>
#include <vector>

int main(int argc, char** argv) {
  kz::cli::prepare_process();
  // No setlocale() anywhere: numbers are read and written in the C locale whatever LC_ALL says.
  return kz::cli::run_program(std::vector<std::string>(argv + 1, argv + argc));
}
