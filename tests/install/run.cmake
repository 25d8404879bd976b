# Installs the built tree `build` into `work`, moves it, and builds and runs main.cc against it: once
# through find_package, once through pkg-config.
function(step)
  execute_process(COMMAND ${ARGV} RESULT_VARIABLE code OUTPUT_VARIABLE text ERROR_VARIABLE text)
  message("$ ${ARGV}\n${text}")
  if(code)
    message(FATAL_ERROR "exit code ${code}")
  endif()
endfunction()

file(REMOVE_RECURSE ${work})
step(${CMAKE_COMMAND} --install ${build} --prefix ${work}/first)
file(RENAME ${work}/first ${work}/prefix)
step(${work}/prefix/bin/sardonyx --version)

step(${CMAKE_COMMAND} -S ${source} -B ${work}/cmake -G ${generator} -D CMAKE_PREFIX_PATH=${work}/prefix
  -D CMAKE_CXX_COMPILER=${compiler} -D CMAKE_EXE_LINKER_FLAGS=${linker_flags})
step(${CMAKE_COMMAND} --build ${work}/cmake)
step(${work}/cmake/outside ${model})

# A library of operators, which needs the headers alone, and a program with one of its own.
step(${CMAKE_COMMAND} -S ${operators} -B ${work}/operators -G ${generator}
  -D CMAKE_PREFIX_PATH=${work}/prefix -D CMAKE_CXX_COMPILER=${compiler}
  -D CMAKE_EXE_LINKER_FLAGS=${linker_flags})
step(${CMAKE_COMMAND} --build ${work}/operators)
step(${work}/operators/own_operator ${work}/operators/example_operators.so)
step(${work}/prefix/bin/sardonyx run ${operators}/model.onnxtxt --input "x=ones"
  --library ${work}/operators/example_operators.so)

file(GLOB_RECURSE pc ${work}/prefix/*/sardonyx.pc)
get_filename_component(pc_folder ${pc} DIRECTORY)
get_filename_component(library_folder ${pc_folder} DIRECTORY)
set(ENV{PKG_CONFIG_PATH} ${pc_folder})
execute_process(COMMAND pkg-config --static --cflags --libs sardonyx
  OUTPUT_VARIABLE flags RESULT_VARIABLE code OUTPUT_STRIP_TRAILING_WHITESPACE)
if(code)
  message(FATAL_ERROR "pkg-config failed")
endif()
separate_arguments(flags UNIX_COMMAND "${flags}")
separate_arguments(linker_flags UNIX_COMMAND "${linker_flags}")
step(${compiler} -std=c++20 ${source}/main.cc -o ${work}/outside ${linker_flags} ${flags}
  -Wl,-rpath,${library_folder})
step(${work}/outside ${model})
