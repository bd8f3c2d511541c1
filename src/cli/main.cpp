// The main function alone, so that tests can link everything else.
#include "cli/command.hpp"

int main(int argc, char** argv) { return ferrite::cli::run_program(argc, argv); }
