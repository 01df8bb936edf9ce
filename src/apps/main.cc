#include "apps/command.h"

int main(int argc, char** argv) { return deepinfer::RunCommandLine({argv + 1, argv + argc}); }
