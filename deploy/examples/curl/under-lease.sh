#!/usr/bin/env bash
#
# Runs a command under a migration lease and a failover hold, with curl and jq alone.
#
#   under-lease.sh COMMAND [ARGUMENT ...]
#
# Use `holdfast run` where you can: it does more. What this script cannot do: when the script itself is
# killed with SIGKILL or frozen, the command runs on. `holdfast run` has a guard for that.
#
# From the environment: HOLDFAST_URL, HOLDFAST_CA_FILE, HOLDFAST_TOKEN_FILE, HOLDFAST_GROUP,
# HOLDFAST_INSTANCE; HOLDFAST_TTL_SECONDS (30, from 8 to 120), HOLDFAST_WAIT_SECONDS (600).
#
# Exit codes, as those of `holdfast run`: the command's own; 2 wrong usage; 111 the service cannot be
# reached; 112 not authorized; 113 held by another until the wait ended; 114 not stable until the wait
# ended; 115 authority lost before DDL; 116 authority lost after DDL began, verify the schema by hand;
# 127 no such command.

set -uo pipefail
# The command gets a process group of its own, so that all of it can be stopped.
set -m

say() { printf 'under-lease: %s\n' "$*" >&2; }

fail() {
  local code=$1
  shift
  say "$*"
  exit "$code"
}

[ $# -ge 1 ] || fail 2 "Usage: under-lease.sh COMMAND [ARGUMENT ...]"
for name in HOLDFAST_URL HOLDFAST_CA_FILE HOLDFAST_GROUP HOLDFAST_INSTANCE; do
  [ -n "${!name-}" ] || fail 2 "Cannot call the service as $name is not set"
done
case $HOLDFAST_URL in
  https://*) ;;
  *) fail 2 "Cannot call the service as HOLDFAST_URL must begin with https" ;;
esac
for name in HOLDFAST_GROUP HOLDFAST_INSTANCE; do
  [[ ${!name} =~ ^[a-z0-9]([a-z0-9.-]*[a-z0-9])?$ ]] ||
    fail 2 "Cannot call the service as $name must be lower-case letters, digits, hyphens and dots"
done
grep -q 'BEGIN CERTIFICATE' "$HOLDFAST_CA_FILE" 2>/dev/null ||
  fail 2 "Cannot trust the service as HOLDFAST_CA_FILE must name a file with certificates in PEM form"
ttl=${HOLDFAST_TTL_SECONDS:-30}
wait_seconds=${HOLDFAST_WAIT_SECONDS:-600}
[[ $ttl =~ ^[0-9]+$ && $ttl -ge 8 && $ttl -le 120 ]] ||
  fail 2 "Cannot take a lease as HOLDFAST_TTL_SECONDS must be a whole number from 8 to 120"
[[ $wait_seconds =~ ^[0-9]+$ ]] ||
  fail 2 "Cannot wait as HOLDFAST_WAIT_SECONDS must be a whole number of seconds"
for tool in curl jq; do
  command -v "$tool" >/dev/null || fail 2 "Cannot call the service as there is no $tool"
done
command -v "$1" >/dev/null || fail 127 "Cannot run '$1' as there is no such command: nothing was acquired"

token_file=${HOLDFAST_TOKEN_FILE:-/var/run/secrets/holdfast/token}
[ -r "$token_file" ] || fail 112 "Cannot call the service as the token cannot be read: see HOLDFAST_TOKEN_FILE"
group_url=${HOLDFAST_URL%/}/deploy/v1/groups/$HOLDFAST_GROUP
# One operation for each deployment: one that was revoked stays refused for ever.
operation=$(cat /proc/sys/kernel/random/uuid)
folder=$(mktemp -d)
phase_file=$folder/phase
: >"$phase_file"

# Milliseconds on a clock that nobody sets: a deadline by the wall clock would move with it.
now() {
  local uptime
  read -r uptime _ </proc/uptime
  printf '%s' "$((10#${uptime/./} * 10))"
}

# The work must be asked to stop two margins before the deadline, and be killed one margin before it.
margin=$((ttl * 1000 / 6))
[ "$margin" -ge 2000 ] || margin=2000

# call LIMIT_MS METHOD URL [CURL_OPTION ...]: sets `status` (000: no answer) and writes the body to a file.
# Tokens go in by way of files and of the input, so that no list of processes shows them.
body=$folder/body
call() {
  local limit=$1 method=$2 url=$3
  shift 3
  [ "$limit" -ge 1000 ] || limit=1000
  : >"$body"
  # --disable: a .curlrc of the user must not change what is sent.
  status=$(curl --disable --silent --request "$method" --cacert "$HOLDFAST_CA_FILE" \
    --max-time "$((limit / 1000)).$((limit % 1000 / 100))" --output "$body" \
    --dump-header "$folder/headers" --write-out '%{http_code}' \
    --header @<(printf 'Authorization: Bearer %s' "$(cat "$token_file" 2>/dev/null)") \
    --header 'Content-Type: application/json' "$@" "$url") || status=000
}

# member PATH: a member of the last body; empty when it is not there.
member() { jq -r "($1) // empty" "$body" 2>/dev/null; }

# What ended the authority; empty while it lasts.
lost=
child=
migration_token=
hold_token=

# grant KIND: sends one grant. Sets `sent`, `token`, `generation`.
grant() {
  sent=$(now)
  call 5000 POST "$group_url/leases" --data @- <<EOF
{"kind":"$1","operationId":"$operation","instance":"$HOLDFAST_INSTANCE","ttlSeconds":$ttl}
EOF
  token=$(member .token)
}

# renew KIND TOKEN: always sends ttlSeconds, for a renewal without it shortens the lease to 5 seconds.
renew() {
  local left=$((deadline - 2 * margin - $(now)))
  [ "$left" -le 5000 ] || left=5000
  renewed_sent=$(now)
  call "$left" PUT "$group_url/leases/$1/$operation" --data @- <<EOF
{"token":"$2","ttlSeconds":$ttl}
EOF
  case $status in
    200)
      [ "$(member .topologyGeneration)" = "$generation" ] || lost="the group's topology changed"
      ;;
    404) lost="the lease ended" ;;
    409) lost="it was revoked ($(member .reason))" ;;
    403) [ "$(member .error)" != token_mismatch ] || lost="the lease was granted to another caller" ;;
    # 423, 503 and no answer are no renewal, and no loss: the deadline stays where it was.
  esac
}

# release KIND TOKEN: an answer is not needed, the lease ends with its ttl.
release() {
  [ -n "$2" ] || return 0
  call 3000 DELETE "$group_url/leases/$1/$operation" --header @<(printf 'X-Lease-Token: %s' "$2")
  [ "$status" = 204 ] || say "Could not release the $1 lease: it ends by itself within $ttl s"
}

is_ddl() { grep -q '^ddl' "$phase_file"; }

living() { [ -n "$child" ] && kill -0 -- "-$child" 2>/dev/null; }

# On every path: what is left of the command is killed first, then the leases are given back.
# The migration lease stays where DDL had begun and failed, until somebody has looked at the schema.
code=1
cleanup() {
  living && kill -KILL -- "-$child" 2>/dev/null
  release failover-hold "$hold_token"
  if [ "$code" -eq 0 ] || ! is_ddl; then
    release migration "$migration_token"
  fi
  rm -rf "$folder"
}
trap cleanup EXIT
asked=
trap 'asked=INT; living && kill -INT -- "-$child"' INT
trap 'asked=TERM; living && kill -TERM -- "-$child"' TERM

leave() {
  code=$1
  shift
  say "$*"
  exit "$code"
}

# 1. Look first, then ask. A GET never changes anything; a POST, PUT or DELETE is never a probe.
until_ms=$(($(now) + wait_seconds * 1000))
patience=$(($(now) + 10000))
why=
while :; do
  case $asked in
    INT) leave 130 "Stopped before the command was started" ;;
    TERM) leave 143 "Stopped before the command was started" ;;
  esac
  step=look
  lost_grant=
  call 5000 GET "$group_url"
  if [ "$status" = 200 ] && [ "$(member .stable)" = true ]; then
    step=grant
    site=$(member .activeSite)
    grant migration
    case $status in
      200 | 201)
        fence=$(sed -n 's/^x-lease-fence: *\([0-9]*\).*/\1/Ip' "$folder/headers")
        migration_token=$token
        generation=$(member .topologyGeneration)
        deadline=$((sent + ttl * 1000))
        break
        ;;
    esac
  fi
  case $status in
    000)
      give_up=111 text="the service cannot be reached"
      # The same operation is asked for again: that finds a lease whose answer was lost.
      [ "$step" = look ] || lost_grant=". A lease may be stored all the same: it ends within $ttl s"
      ;;
    200) give_up=114 text="the group is not stable: $(member .unstableReason)" ;;
    400) leave 2 "The service refuses the request: is '$HOLDFAST_INSTANCE' the name of a MysqlDatabase?" ;;
    401) leave 112 "The service refuses the token: it must be for the service's audience" ;;
    403) leave 112 "The service account is not allowed to: see 'spec.deploymentClients'" ;;
    404) leave 112 "There is no group '$HOLDFAST_GROUP'" ;;
    409)
      [ -n "$(member .holder)" ] || leave 115 "The operation was revoked"
      give_up=113 text="held by operation $(member .holder.operationId) until $(member .holder.expiresAt)"
      ;;
    423) give_up=114 text="the group is not stable: $(member .reason)" ;;
    503) give_up=111 text="the service answers $(member .error)" ;;
    *) give_up=111 text="what answers is not the deployment API (status $status, $step)" ;;
  esac
  # A change of leader takes a moment, also for who does not want to wait.
  limit=$until_ms
  [ "$give_up" != 111 ] || [ "$limit" -ge "$patience" ] || limit=$patience
  [ "$(now)" -lt "$limit" ] || leave "$give_up" "Cannot take the lease: $text$lost_grant"
  [ "$text" = "$why" ] || say "Waiting: $text"
  why=$text
  sleep 1
done

# 2. The hold, so that no planned failover begins. An answer that was lost is asked for again.
for _ in 1 2 3; do
  grant failover-hold
  case $status in
    000 | 503) sleep 1 ;;
    *) break ;;
  esac
done
case $status in
  200 | 201)
    hold_token=$token
    [ "$(member .topologyGeneration)" = "$generation" ] || leave 115 "The group's topology changed"
    ;;
  409) leave 115 "The operation was revoked" ;;
  000 | 503) leave 111 "Cannot take the hold: the service cannot be reached" ;;
  *) leave 114 "Cannot take the hold (status $status)" ;;
esac

# 3. The command.
say "Holds the migration lease and a hold as operation $operation, generation $generation"
HOLDFAST_OPERATION_ID=$operation HOLDFAST_TOPOLOGY_GENERATION=$generation HOLDFAST_FENCE=$fence \
  HOLDFAST_ACTIVE_SITE=$site HOLDFAST_PHASE_FILE=$phase_file "$@" &
child=$!
[ -z "$asked" ] || kill "-$asked" -- "-$child"

# 4. Renew each lease at a third of the ttl, and count the deadline from the sending.
next=$((sent + ttl * 1000 / 3))
while kill -0 "$child" 2>/dev/null; do
  if [ "$(now)" -ge $((deadline - 2 * margin)) ]; then
    lost="its deadline is near and no renewal succeeded"
    break
  fi
  if [ "$(now)" -ge "$next" ]; then
    renew migration "$migration_token"
    first_status=$status first_sent=$renewed_sent
    [ -n "$lost" ] || renew failover-hold "$hold_token"
    [ -z "$lost" ] || break
    if [ "$first_status" = 200 ] && [ "$status" = 200 ]; then
      deadline=$((first_sent + ttl * 1000))
      next=$((first_sent + ttl * 1000 / 3))
    else
      next=$(($(now) + 500))
    fi
  fi
  sleep 0.2
done

# 5. Lost: stop the command before another one may hold the lease.
if [ -n "$lost" ]; then
  kill_at=$(($(now) + 2000))
  case $lost in *deadline*) kill_at=$((deadline - margin)) ;; esac
  say "Authority is lost as $lost: the command is stopped"
  # The shell would tell of the end of its job as well.
  exec 3>&2 2>/dev/null
  kill -TERM -- "-$child"
  while living && [ "$(now)" -lt "$kill_at" ]; do sleep 0.1; done
  kill -KILL -- "-$child"
  wait "$child"
  exec 2>&3 3>&-
  is_ddl && leave 116 "DDL had begun: verify the schema by hand"
  leave 115 "Deploy again, with a new operation"
fi

wait "$child"
code=$?
(exit "$code")
