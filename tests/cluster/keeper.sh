#!/bin/sh
# Keeps the processes of one test cluster, and outlives nothing: when the test process ends, however it ends, standard
# input ends here, and then the processes are stopped and their folder is removed.
#
# Usage: keeper.sh FOLDER
#   FOLDER/RUN.sh   becomes the process (`exec`)
#   FOLDER/RUN.log  gets what it prints; FOLDER/RUN.exit its exit code, once it is over
# Commands on standard input, one a line: `start RUN`, `stop RUN`, `kill RUN`. A run is started once.
set -u
folder=$1
cd "$folder" || exit 1
runs=

start() {
  # The latest first: what depends on another is stopped before it.
  runs="$1 $runs"
  # The inner shell waits, so that an exit is seen; the outer one reads on.
  (
    sh "./$1.sh" >>"$1.log" 2>&1 </dev/null &
    echo $! >"$1.pid.new" && mv "$1.pid.new" "$1.pid"
    wait $!
    echo $? >"$1.exit"
  ) 2>/dev/null &
  while [ ! -f "$1.pid" ]; do sleep 0.01; done
}

# Sends a signal, and KILL when the process is still there after 5 s. Whoever would write down its exit may be gone: a signal
# to the whole group takes it along. So the process itself is asked for as well.
end() {
  pid=$(cat "$2.pid")
  [ -f "$2.exit" ] || kill "-$1" "$pid" 2>/dev/null
  ticks=0
  while [ ! -f "$2.exit" ] && kill -0 "$pid" 2>/dev/null; do
    ticks=$((ticks + 1))
    [ $ticks -eq 250 ] && kill -KILL "$pid" 2>/dev/null
    sleep 0.02
  done
}

finish() {
  trap '' INT TERM HUP
  for run in $runs; do end TERM "$run"; done
  rm -rf "$folder"
}
trap finish EXIT
trap 'exit 1' INT TERM HUP

while read -r verb run; do
  case $verb in
    start) start "$run" ;;
    stop) end TERM "$run" ;;
    kill) end KILL "$run" ;;
  esac
done
