#pragma once

/// Whether what the headers of CPU kernels declare can be called from outside, and gives what it should.
bool cpu_kit_works();
