# find_package(dsh) gives these targets, as far as the libraries are installed:
#
#   dsh::dsh      the shared library
#   dsh::static   the static library; one Rust static library per program
#
# Each brings <dsh.h> and, for C++, <dsh.hpp> with C++17. The package may be moved as a whole: it is found from where this
# file is, in PREFIX/lib/cmake/dsh.

get_filename_component(_dsh_lib "${CMAKE_CURRENT_LIST_DIR}/../.." REALPATH)
get_filename_component(_dsh_prefix "${_dsh_lib}" DIRECTORY)

# Several projects of one build may ask for the package, each in its turn.
function(_dsh_add target kind)
  if(TARGET ${target})
    return()
  endif()
  foreach(name IN LISTS ARGN)
    if(EXISTS "${_dsh_lib}/${name}")
      add_library(${target} ${kind} IMPORTED)
      set_target_properties(${target} PROPERTIES
        IMPORTED_LOCATION "${_dsh_lib}/${name}"
        INTERFACE_INCLUDE_DIRECTORIES "${_dsh_prefix}/include")
      get_property(languages GLOBAL PROPERTY ENABLED_LANGUAGES)
      if("CXX" IN_LIST languages)
        set_property(TARGET ${target} PROPERTY INTERFACE_COMPILE_FEATURES cxx_std_17)
      endif()
      return()
    endif()
  endforeach()
endfunction()

_dsh_add(dsh::dsh SHARED libdsh.so libdsh.dylib)
_dsh_add(dsh::static STATIC libdsh.a)

if(TARGET dsh::static AND NOT APPLE)
  set_target_properties(dsh::static PROPERTIES INTERFACE_LINK_LIBRARIES "-lpthread;-ldl;-lm;-lgcc_s")
endif()

if(NOT TARGET dsh::dsh AND NOT TARGET dsh::static)
  set(dsh_FOUND FALSE)
  set(dsh_NOT_FOUND_MESSAGE "there is no libdsh in ${_dsh_lib}")
endif()

unset(_dsh_lib)
unset(_dsh_prefix)
