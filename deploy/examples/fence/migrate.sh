#!/bin/sh
# A migration behind the fence of docs/fencing.md: holdfast run -- ./migrate.sh 0042_add_shipped.sql
# MYSQL_PWD holds the password of the account.
set -eu
echo ddl > "$HOLDFAST_PHASE_FILE"
exec mariadb --host="$DATABASE_HOST" --port="${DATABASE_PORT:-3306}" --user=migrator \
  --init-command="CALL holdfast.enter($HOLDFAST_TOPOLOGY_GENERATION, $HOLDFAST_FENCE)" \
  app < "$1"
