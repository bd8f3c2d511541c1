// The arrays that `ferrite kernel run` leaves: shown, and written as .npy files.
#pragma once

#include <string>
#include <vector>

#include "ferrite/kernel/interpreter.hpp"

namespace ferrite::cli {

/// An array among the arguments; one in a struct is called s.x. The value is borrowed.
struct NamedArray {
  std::string name;
  const kernel::Value* value;
};

/// The arrays of a launch, those inside structs too, in the order of the parameters.
std::vector<NamedArray> arrays_of(const kernel::Module& module, const kernel::Function& kernel,
                                  const std::vector<kernel::Value>& values);

/// The type, the shape and the first numbers.
std::string text_of(const kernel::Module& module, const NamedArray& array);

/// Makes the folder for the arrays. ValueError if one of them would be written over one of these files.
void prepare_folder(const std::string& folder, const std::vector<NamedArray>& arrays,
                    const std::vector<std::string>& files);
void write_array(const std::string& folder, const NamedArray& array);

}  // namespace ferrite::cli
