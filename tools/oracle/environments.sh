# Sourced by the scripts of this folder: Pythons with the other implementations, made once.

envs=build/oracle-env
install_s=1800  # that an installation may take

# environment NAME WITH_DEPENDENCIES WITHOUT_DEPENDENCIES: a Python with these packages, made once.
# The packages of the oracles ask for servers, GPU libraries and trainers that are not used here.
environment() {
  local home=$envs/$1
  [ -f "$home/versions.txt" ] && return
  echo "==== environment $1"
  rm -rf "$home"
  "${PYTHON:-python3}" -m venv "$home"
  # shellcheck disable=SC2086
  timeout "$install_s" "$home/bin/pip" install --quiet $2
  timeout "$install_s" "$home/bin/pip" install --quiet --no-deps "$3"
  "$home/bin/pip" freeze >"$home/versions.txt"
}

ftllm_environment() {
  environment ftllm "transformers==5.23.0 numpy safetensors pillow jinja2" ftllm==1.9.0
}
