# `cmake --install` gives a package that find_package(ferrite) finds. Public headers need nothing but the
# standard library, so the package of a shared library depends only on threads.
include(GNUInstallDirs)
include(CMakePackageConfigHelpers)

install(TARGETS ferrite EXPORT ferrite-targets)
# The program finds the library beside it, wherever the prefix is moved to.
set_target_properties(ferrite_cli PROPERTIES INSTALL_RPATH "$ORIGIN/../${CMAKE_INSTALL_LIBDIR}")
install(TARGETS ferrite_cli)
foreach(module ferrite_parquet_reader ferrite_mpi_transport)
  if(TARGET ${module})
    install(TARGETS ${module} LIBRARY DESTINATION ${CMAKE_INSTALL_LIBDIR})
  endif()
endforeach()
install(DIRECTORY share/ DESTINATION ${CMAKE_INSTALL_DATADIR}/ferrite)
install(DIRECTORY include/ DESTINATION ${CMAKE_INSTALL_INCLUDEDIR})
install(EXPORT ferrite-targets NAMESPACE ferrite:: DESTINATION ${CMAKE_INSTALL_LIBDIR}/cmake/ferrite)
configure_package_config_file(cmake/ferrite-config.cmake.in ${PROJECT_BINARY_DIR}/ferrite-config.cmake
                              INSTALL_DESTINATION ${CMAKE_INSTALL_LIBDIR}/cmake/ferrite)
write_basic_package_version_file(${PROJECT_BINARY_DIR}/ferrite-config-version.cmake COMPATIBILITY SameMinorVersion)
install(FILES ${PROJECT_BINARY_DIR}/ferrite-config.cmake ${PROJECT_BINARY_DIR}/ferrite-config-version.cmake
        DESTINATION ${CMAKE_INSTALL_LIBDIR}/cmake/ferrite)
