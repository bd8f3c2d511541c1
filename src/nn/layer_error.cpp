// Errors that name the layer they come from.
#include "ferrite/nn/layer_error.hpp"

#include "ferrite/core/error.hpp"

namespace ferrite::detail {

void rethrow_from_layer(const std::string& name, const Meta& input) {
  const std::string place = "\n  in layer '" + name + "', whose input is " + to_string(input);
  try {
    throw;
  } catch (const ShapeError& error) {
    throw ShapeError(error.what() + place);
  } catch (const DTypeError& error) {
    throw DTypeError(error.what() + place);
  } catch (const ValueError& error) {
    throw ValueError(error.what() + place);
  } catch (const DeviceError& error) {
    throw DeviceError(error.what() + place);
  } catch (const OutOfMemory& error) {
    throw OutOfMemory(error.what() + place);
  } catch (const GradientError& error) {
    throw GradientError(error.what() + place);
  } catch (const BackendError& error) {
    throw BackendError(error.what() + place);
  }
}

}  // namespace ferrite::detail
