# A migration that takes long, for the tests: it writes a row each 100 ms, to whichever server takes it, and notes what the
# database said to each. It goes on until the file FINISH is there.
#
# MARIADB is the client, PORTS are those of both servers, LOG gets the notes, LATE makes it try a change of the schema.
# With ESCAPE it starts itself once more in a session of its own, where nothing that ends its group reaches it.

enter="CALL holdfast.enter($HOLDFAST_TOPOLOGY_GENERATION, $HOLDFAST_FENCE)"

# Which writer it is, a word for what it wants, and the statement.
write() {
  for port in $PORTS; do
    if said=$("$MARIADB" --no-defaults --host=127.0.0.1 --port="$port" --user=migrator app \
      --init-command="$enter" --execute="$3" 2>&1); then
      echo "$1 $2 taken" >> "$LOG"
      return 0
    fi
    echo "$1 $2 refused: $(echo "$said" | tail -n 1)" >> "$LOG"
  done
}

if [ "${1:-}" != escaped ]; then
  echo ddl > "$HOLDFAST_PHASE_FILE"
  write command first-change "$FIRST_CHANGE"
  if [ -n "$ESCAPE" ]; then
    setsid sh "$0" escaped < /dev/null > /dev/null 2>&1 &
  fi
  echo "pid $$"
fi
if [ -n "$ESCAPE" ]; then trap '' TERM; fi

writer=${1:-command}
n=0
# A test that was killed takes its folder with it, and leaves nobody who would make the file.
until [ -e "$FINISH" ] || [ ! -e "$LOG" ]; do
  n=$((n + 1))
  write "$writer" row "INSERT INTO orders (generation, n) VALUES ($HOLDFAST_TOPOLOGY_GENERATION, $n)"
  if [ -e "$LATE" ]; then
    write "$writer" late-change "CALL holdfast.ddl('ALTER TABLE app.orders ADD COLUMN late INT')"
  fi
  sleep 0.1
done
echo "$writer gone" >> "$LOG"
