import assert from "node:assert/strict";
import fc from "fast-check";
import { ConfigError } from "../../lib/config/errors.ts";
import {
  type ConfigInput,
  loadConfig,
  readConfig,
  servicePurpose,
} from "../../lib/config/layers.ts";
import { configKeys } from "../../lib/config/schema.ts";

interface World {
  readonly files?: Readonly<Record<string, string>>;
  readonly env?: Readonly<Record<string, string>>;
  readonly profile?: string;
  readonly set?: Readonly<Record<string, string>>;
}

function inputOf({ files = {}, env = {}, profile, set = {} }: World): ConfigInput {
  return {
    env,
    profile,
    readTextFile: (path) => files[path],
    options: Object.entries(set).map(([key, text]) => ({ option: `--set ${key}`, key, text })),
  };
}

const load = (world: World) => loadConfig(inputOf(world));

/** The messages of a configuration that is refused. */
function refusal(world: World): readonly string[] {
  try {
    load(world);
  } catch (error) {
    assert(error instanceof ConfigError);
    return error.problems.map(({ message }) => message);
  }
  return assert.fail("The configuration was not refused");
}

const LEVEL = "log.level";

Deno.test("without any layer there are the defaults of the contract", () => {
  const { config, sources } = load({});
  assert.deepEqual(config, {
    listen: {
      metrics: { port: 8080 },
      probes: { port: 8081 },
      auxiliary: { port: 8082 },
      tls: { port: 8443 },
    },
    tls: { cert_file: "", key_file: "" },
    deploy_api: {
      enabled: false,
      audience: "bloodraven-deploy",
      request_timeout: 10_000,
      max_clock_offset: 1_000,
      max_hold_age: 0,
      max_status_age: 0,
      terminal_hold_retention: 86_400_000,
    },
    auxiliary: { ws_allowed_origins: ["*"], ws_max_clients: 100, status_page: false },
    planned_operations: { enabled: false, executor: "external" },
    kubernetes: {
      enabled: true,
      required: false,
      namespace: "",
      events: true,
      leader_election: {
        enabled: false,
        lease_name: "",
        identity: "",
        lease_duration_secs: 15,
        renew_deadline_secs: 10,
        retry_period_secs: 2,
        release_on_shutdown: true,
        lead_when_detached: false,
        roles: [],
        label_leader: false,
      },
      config_maps: { watch: [] },
    },
    host: {
      listen: { host: "127.0.0.1", port: 3000 },
      prestop_grace_secs: 5,
      shutdown_timeout_secs: 30,
      role: "combined",
      live_path: "/live",
      ready_path: "/ready",
      startup_path: "/startup",
    },
    log: { level: "info", format: "json" },
    tracing: { enabled: false },
  });
  assert.deepEqual(new Set(sources.values()), new Set(["default"]));
  assert.deepEqual([...sources.keys()], [...configKeys.keys.keys()]);
});

Deno.test("the service needs a cluster and elects a leader, under a Lease name of its own", () => {
  const { config, sources } = loadConfig({ ...inputOf({}), purpose: servicePurpose });
  assert.equal(config.kubernetes.required, true);
  assert.equal(config.kubernetes.leader_election.enabled, true);
  assert.equal(config.kubernetes.leader_election.lease_name, "holdfast.shipstream.io");
  assert.equal(sources.get("kubernetes.required"), "default");
});

Deno.test("an empty section and an empty file change nothing", () => {
  const plain = load({}).config;
  for (const text of ["", "# nothing\n", "---\n", "tls:\nprofile:\n", "profile:\n  dev:\n"]) {
    assert.deepEqual(load({ files: { "holdfast.yaml": text } }).config, plain, text);
  }
});

Deno.test("each layer wins over those below it", () => {
  // From low to high; every word is a value of log.level, and neighbours differ.
  const layers: readonly (readonly [source: string, level: string, world: World])[] = [
    ["holdfast.yaml", "debug", {
      files: { "holdfast.yaml": "log: {level: debug}\nprofile: {dev: {}}" },
    }],
    ["holdfast.yaml (profile dev)", "warn", {
      files: { "holdfast.yaml": "log: {level: debug}\nprofile: {dev: {log: {level: warn}}}" },
    }],
    ["holdfast-dev.yaml", "error", { files: { "holdfast-dev.yaml": "log: {level: error}" } }],
    ["HOLDFAST__LOG__LEVEL in .env.dev.local", "debug", {
      files: { ".env.dev.local": "HOLDFAST__LOG__LEVEL=debug" },
    }],
    ["HOLDFAST__LOG__LEVEL in .env.dev", "warn", {
      files: { ".env.dev": "HOLDFAST__LOG__LEVEL=warn" },
    }],
    ["HOLDFAST__LOG__LEVEL in .env.local", "error", {
      files: { ".env.local": "HOLDFAST__LOG__LEVEL=error" },
    }],
    ["HOLDFAST__LOG__LEVEL in .env", "debug", { files: { ".env": "HOLDFAST__LOG__LEVEL=debug" } }],
    ["HOLDFAST__LOG__LEVEL", "warn", { env: { HOLDFAST__LOG__LEVEL: "warn" } }],
    ["--set log.level", "error", { set: { [LEVEL]: "error" } }],
  ];
  let files: Record<string, string> = {};
  let env: Record<string, string> = {};
  let set: Record<string, string> = {};
  for (const [source, level, world] of layers) {
    files = { ...files, ...world.files };
    env = { ...env, ...world.env };
    set = { ...set, ...world.set };
    const { config, sources } = load({ files, env, set, profile: "dev" });
    assert.equal(config.log.level, level, source);
    assert.equal(sources.get(LEVEL), source);
  }
});

Deno.test("our own variables win over those of the reference, and these over .env files", () => {
  const files = { ".env": "HOLDFAST__DEPLOY_API__AUDIENCE=file" };
  const compatible = { BLOODRAVEN_DEPLOY_API_AUDIENCE: "theirs" };
  const own = { HOLDFAST__DEPLOY_API__AUDIENCE: "ours" };
  const audience = (env: Record<string, string>) =>
    load({ files, env, profile: "dev" }).config.deploy_api.audience;
  assert.equal(audience({}), "file");
  assert.equal(audience(compatible), "theirs");
  assert.equal(audience({ ...compatible, ...own }), "ours");
});

Deno.test("higher wins, key by key, whatever the layers hold", () => {
  const keys = ["tls.cert_file", "tls.key_file", "deploy_api.audience"] as const;
  const value = fc.stringMatching(/^[a-z]{1,8}$/);
  const layer = fc.record(
    { "tls.cert_file": value, "tls.key_file": value, "deploy_api.audience": value },
    { requiredKeys: [] },
  );
  const yaml = (settings: Record<string, string | undefined>, indent = "") =>
    Object.entries(settings).reduce<Record<string, Record<string, string>>>((tree, [key, text]) => {
      const [section = "", name = ""] = key.split(".");
      return { ...tree, [section]: { ...tree[section], [name]: `${indent}${text}` } };
    }, {});
  fc.assert(fc.property(fc.tuple(layer, layer, layer, layer, layer), (layers) => {
    const [base, inline, own, env, set] = layers;
    const entries = Object.entries(env).map(([key, text]) =>
      [`HOLDFAST__${key.replace(".", "__").toUpperCase()}`, text ?? ""] as const
    );
    const { entries: found } = readConfig(inputOf({
      files: {
        "holdfast.yaml": JSON.stringify({ ...yaml(base), profile: { p: yaml(inline) } }),
        "holdfast-p.yaml": JSON.stringify(yaml(own)),
      },
      env: Object.fromEntries(entries),
      set,
      profile: "p",
    }));
    for (const key of keys) {
      const expected = layers.map((settings) => settings[key]).findLast((text) =>
        text !== undefined
      );
      const entry = found.find((candidate) => candidate.key === key);
      assert.equal(entry?.value, expected ?? configKeys.keys.get(key)?.fallback);
      assert.equal(entry?.source === "default", expected === undefined);
    }
  }));
});

Deno.test("sections merge by key, and a list is replaced as a whole", () => {
  const { config } = load({
    files: {
      "holdfast.yaml": "host: {prestop_grace_secs: 1, shutdown_timeout_secs: 2}\n" +
        "kubernetes: {leader_election: {roles: [web, worker]}}",
      "holdfast-p.yaml": "host: {shutdown_timeout_secs: 3}\n" +
        "kubernetes: {leader_election: {roles: [combined]}}",
    },
    profile: "p",
  });
  assert.equal(config.host.prestop_grace_secs, 1);
  assert.equal(config.host.shutdown_timeout_secs, 3);
  assert.deepEqual(config.kubernetes.leader_election.roles, ["combined"]);
});

Deno.test("the section of a profile has an effect in that profile only", () => {
  const files = {
    "holdfast.yaml": "profile: {one: {log: {level: debug}}, two: {log: {level: warn}}}",
  };
  assert.equal(load({ files }).config.log.level, "info");
  assert.equal(load({ files, profile: "one" }).config.log.level, "debug");
  assert.equal(load({ files, profile: "two" }).config.log.level, "warn");
  assert.equal(load({ files, profile: "three" }).config.log.level, "info");
});

Deno.test("of a profile's two names the short one wins in the file, and the user's own names the files", () => {
  const files = {
    "holdfast.yaml":
      "profile: {prod: {log: {level: debug}}, production: {log: {level: warn, format: text}}}",
    "holdfast-prod.yaml": "host: {prestop_grace_secs: 1}",
    "holdfast-production.yaml": "host: {prestop_grace_secs: 2}",
  };
  for (const [profile, grace] of [["prod", 1], ["production", 2]] as const) {
    const { config } = load({ files, profile });
    assert.equal(config.log.level, "debug");
    assert.equal(config.log.format, "text");
    assert.equal(config.host.prestop_grace_secs, grace);
  }
  const { "holdfast-production.yaml": _, ...short } = files;
  assert.equal(load({ files: short, profile: "production" }).config.host.prestop_grace_secs, 1);
});

Deno.test("a YAML file that is not in the folder is read from the working directory, each by itself", () => {
  const env = { AUTUMN_MANIFEST_DIR: "/baked/" };
  const files = {
    "/baked/holdfast.yaml": "log: {level: debug}",
    "holdfast.yaml": "log: {level: error}",
    "holdfast-p.yaml": "log: {format: text}",
  };
  const { config, sources } = load({ files, env, profile: "p" });
  assert.deepEqual(config.log, { level: "debug", format: "text" });
  assert.equal(sources.get("log.level"), "/baked/holdfast.yaml");
  assert.equal(sources.get("log.format"), "holdfast-p.yaml");
  const { "/baked/holdfast.yaml": _, ...outside } = files;
  assert.equal(load({ files: outside, env }).config.log.level, "error");
});

Deno.test(".env files are read from the folder alone", () => {
  const env = { AUTUMN_MANIFEST_DIR: "/baked" };
  const outside = { ".env": "HOLDFAST__LOG__LEVEL=debug" };
  assert.equal(load({ files: outside, env, profile: "dev" }).config.log.level, "info");
  const inside = { "/baked/.env": "HOLDFAST__LOG__LEVEL=warn" };
  assert.equal(load({ files: inside, env, profile: "dev" }).config.log.level, "warn");
});

Deno.test("the root folder is a folder too", () => {
  const world = {
    files: { "//holdfast.yaml": "log: {level: warn}" },
    env: { AUTUMN_MANIFEST_DIR: "/" },
  };
  assert.equal(load(world).config.log.level, "warn");
});

Deno.test("an earlier .env file wins, and the environment of the process over all of them", () => {
  const files = {
    ".env": "HOLDFAST__TLS__CERT_FILE=a",
    ".env.local": "HOLDFAST__TLS__CERT_FILE=b\nHOLDFAST__TLS__KEY_FILE=b",
    ".env.dev": "HOLDFAST__TLS__KEY_FILE=c\nHOLDFAST__DEPLOY_API__AUDIENCE=c",
  };
  const env = { HOLDFAST__DEPLOY_API__AUDIENCE: "d" };
  const { config } = load({ files, env, profile: "dev" });
  assert.deepEqual(config.tls, { cert_file: "a", key_file: "b" });
  assert.equal(config.deploy_api.audience, "d");
});

Deno.test("a .env file cannot select the profile, nor switch itself off", () => {
  const files = {
    ".env": "AUTUMN_ENV=prod\nAUTUMN_PROFILE=prod\nAUTUMN_DOTENV=0\nAUTUMN_MANIFEST_DIR=/x",
    ".env.dev": "HOLDFAST__LOG__LEVEL=debug",
    "holdfast-prod.yaml": "log: {format: text}",
  };
  const { config } = load({ files, profile: "dev" });
  assert.deepEqual(config.log, { level: "debug", format: "json" });
});

Deno.test("variables of the reference work from a .env file too", () => {
  const files = { ".env": "AUTUMN_KUBERNETES__NAMESPACE=shop" };
  const { config, sources } = load({ files, profile: "test" });
  assert.equal(config.kubernetes.namespace, "shop");
  assert.equal(sources.get("kubernetes.namespace"), "AUTUMN_KUBERNETES__NAMESPACE in .env");
});

Deno.test("without a profile no .env file is read", () => {
  assert.equal(load({ files: { ".env": "not = a = line\n'" } }).config.log.level, "info");
});

Deno.test("what is wrong with a file is told with the file, the key, the type and what is right", () => {
  const table: readonly (readonly [string, string])[] = [
    [
      "deploi: {}",
      "Cannot use holdfast.yaml as there is no key 'deploi': the keys at the top level are listen, tls, deploy_api, auxiliary, planned_operations, kubernetes, host, log, tracing",
    ],
    [
      "tls: {cert: x}",
      "Cannot use holdfast.yaml as there is no key 'tls.cert': the keys in 'tls' are cert_file, key_file",
    ],
    [
      "kubernetes: {leader_election: {x: 1}}",
      "Cannot use holdfast.yaml as there is no key 'kubernetes.leader_election.x': the keys in 'kubernetes.leader_election' are enabled, lease_name, identity, lease_duration_secs, renew_deadline_secs, retry_period_secs, release_on_shutdown, lead_when_detached, roles, label_leader",
    ],
    [
      "tls: hunter2",
      "Cannot use 'tls' from holdfast.yaml as it must be a section: current value is a text",
    ],
    [
      "tls: [a]",
      "Cannot use 'tls' from holdfast.yaml as it must be a section: current value is a list",
    ],
    [
      "tls: {cert_file: }",
      "Cannot use 'tls.cert_file' from holdfast.yaml as it must be a path of a file: current value is empty",
    ],
    [
      "tls: {cert_file: {a: b}}",
      "Cannot use 'tls.cert_file' from holdfast.yaml as it must be a path of a file: current value is a section",
    ],
    [
      "tls: {cert_file: 5}",
      "Cannot use 'tls.cert_file' from holdfast.yaml as it must be a path of a file: current value is the number 5",
    ],
    [
      "deploy_api: {enabled: yes}",
      "Cannot use 'deploy_api.enabled' from holdfast.yaml as it must be true or false: current value is a text",
    ],
    [
      "deploy_api: {audience: ' '}",
      "Cannot use 'deploy_api.audience' from holdfast.yaml as it must be a text that is not blank: current value is a text",
    ],
    [
      "deploy_api: {request_timeout: 1ms}",
      "Cannot use 'deploy_api.request_timeout' from holdfast.yaml as it must be a duration such as 10s or 1m30s, from 100ms to 1m: current value is a text",
    ],
    [
      "deploy_api: {request_timeout: 10}",
      "Cannot use 'deploy_api.request_timeout' from holdfast.yaml as it must be a duration such as 10s or 1m30s, from 100ms to 1m: current value is the number 10",
    ],
    [
      "host: {prestop_grace_secs: 1.5}",
      "Cannot use 'host.prestop_grace_secs' from holdfast.yaml as it must be a whole number from 0 to 3600: current value is the number 1.5",
    ],
    [
      "host: {prestop_grace_secs: .inf}",
      "Cannot use 'host.prestop_grace_secs' from holdfast.yaml as it must be a whole number from 0 to 3600: current value is the number Infinity",
    ],
    [
      "host: {role: king}",
      "Cannot use 'host.role' from holdfast.yaml as it must be one of combined, web, worker: current value is a text",
    ],
    [
      "host: {live_path: live}",
      "Cannot use 'host.live_path' from holdfast.yaml as it must be a path that begins with /: current value is a text",
    ],
    [
      "listen: {tls: 8443}",
      "Cannot use 'listen.tls' from holdfast.yaml as it must be an address such as :8443, 127.0.0.1:8443 or [::1]:8443: current value is the number 8443",
    ],
    [
      "kubernetes: {leader_election: {roles: web}}",
      "Cannot use 'kubernetes.leader_election.roles' from holdfast.yaml as it must be a list of texts: current value is a text",
    ],
    [
      "kubernetes: {leader_election: {roles: [1]}}",
      "Cannot use 'kubernetes.leader_election.roles' from holdfast.yaml as it must be a list of texts: current value is a list",
    ],
    ["- a", "Cannot use holdfast.yaml as it must hold sections: current value is a list"],
    ["hunter2", "Cannot use holdfast.yaml as it must hold sections: current value is a text"],
    [
      "a: 1\nb: [hunter2",
      "Cannot read holdfast.yaml as line 2, column 12 is not valid YAML (BAD_INDENT)",
    ],
    [
      "tls: {}\ntls: {}",
      "Cannot read holdfast.yaml as line 2, column 1 is not valid YAML (DUPLICATE_KEY)",
    ],
    [
      "a: 1\n---\nb: 2",
      "Cannot read holdfast.yaml as line 2, column 1 is not valid YAML (MULTIPLE_DOCS)",
    ],
    [
      "profile: 5",
      "Cannot use 'profile' from holdfast.yaml as it must be a section: current value is a number",
    ],
    [
      "profile: {dev: 5}",
      "Cannot use holdfast.yaml (profile dev) as it must hold sections: current value is a number",
    ],
    [
      "profile: {dev: {x: 1}}",
      "Cannot use holdfast.yaml (profile dev) as there is no key 'x': the keys at the top level are listen, tls, deploy_api, auxiliary, planned_operations, kubernetes, host, log, tracing",
    ],
    [
      "__proto__: {x: 1}",
      "Cannot use holdfast.yaml as there is no key '__proto__': the keys at the top level are listen, tls, deploy_api, auxiliary, planned_operations, kubernetes, host, log, tracing",
    ],
  ];
  for (const [text, message] of table) {
    const messages = refusal({ files: { "holdfast.yaml": text } });
    assert.deepEqual(messages, [message], text);
    assert(!messages.join().includes("hunter2"));
  }
});

Deno.test("a profile's own file has no sections for profiles", () => {
  const messages = refusal({ files: { "holdfast-p.yaml": "profile: {p: {}}" }, profile: "p" });
  assert.deepEqual(messages, [
    "Cannot use holdfast-p.yaml as there is no key 'profile': the keys at the top level are listen, tls, deploy_api, auxiliary, planned_operations, kubernetes, host, log, tracing",
  ]);
});

Deno.test("a name with a line end in it cannot break a message into two lines", () => {
  const messages = refusal({ files: { "holdfast.yaml": '"a\\nb": 1' } });
  assert.match(messages.join("|"), /^Cannot use holdfast\.yaml as there is no key 'a b': [^|\n]*$/);
});

Deno.test("a profile may have the name of something that every object has", () => {
  const files = { "holdfast.yaml": "profile: {}" };
  assert.equal(load({ files, profile: "constructor" }).config.log.level, "info");
});

Deno.test("aliases that blow up are refused", () => {
  const bomb = ["a: &a [x, x, x, x, x, x, x, x, x, x]"];
  for (let level = 1; level < 6; level++) {
    const [name, below] = ["abcdef"[level], "abcdef"[level - 1]];
    bomb.push(`${name}: &${name} [${`*${below}, `.repeat(10)}]`);
  }
  const messages = refusal({ files: { "holdfast.yaml": bomb.join("\n") } });
  assert.match(messages.join(), /^Cannot read holdfast\.yaml as its aliases cannot be resolved/);
});

Deno.test("all problems of all layers are told together, one a line", () => {
  const world: World = {
    files: {
      "holdfast.yaml": "tls: {cert: x}\nlog: {level: 5}\nprofile: {other: {nope: 1}}",
      ".env": "HOLDFAST__LOG__FORMAT=xml",
    },
    env: { AUTUMN_ENV: "a/b", AUTUMN_DOTENV: "1", HOLDFAST__TLS: "x" },
    set: { nothing: "x" },
  };
  assert.throws(() => load(world), (error) => {
    assert(error instanceof ConfigError);
    const sources = error.problems.map(({ source }) => source);
    assert.deepEqual(sources.toSorted(), [
      "--set nothing",
      "AUTUMN_ENV",
      "HOLDFAST__LOG__FORMAT in .env",
      "HOLDFAST__TLS",
      "holdfast.yaml",
      "holdfast.yaml",
      "holdfast.yaml (profile other)",
    ]);
    assert.equal(error.message.split("\n").length, 7);
    return true;
  });
});

Deno.test("a value that is wrong is told even where a higher layer would hide it", () => {
  const world = { files: { "holdfast.yaml": "log: {level: loud}" }, set: { [LEVEL]: "warn" } };
  assert.equal(refusal(world).length, 1);
});

Deno.test("a .env line that does not parse is told by path and number alone", () => {
  const messages = refusal({ files: { ".env.local": "A=1\nhunter2" }, profile: "dev" });
  assert.deepEqual(messages, [
    `Cannot read .env.local as line 2 is not of the form NAME=value, NAME='value' or NAME="value"`,
  ]);
});

Deno.test("a file that is there and cannot be read is told with the reason", () => {
  const input = inputOf({ profile: "dev" });
  const readTextFile = (path: string) => {
    if (path === ".env") throw new Error("Is a directory");
    return undefined;
  };
  const { problems } = readConfig({ ...input, readTextFile });
  assert.deepEqual(problems, [{ source: ".env", message: "Cannot read .env: Is a directory" }]);
});

Deno.test("a bad AUTUMN_DOTENV is told", () => {
  assert.match(refusal({ env: { AUTUMN_DOTENV: "maybe" } }).join(), /AUTUMN_DOTENV/);
});

Deno.test("a rule that is broken names where its values came from", () => {
  const input = inputOf({
    files: { "holdfast.yaml": "deploy_api: {enabled: true}" },
    env: { HOLDFAST__TLS__CERT_FILE: "tls.crt" },
  });
  const { problems } = readConfig({ ...input, purpose: servicePurpose });
  assert.deepEqual(problems, [{
    source: "HOLDFAST__TLS__CERT_FILE",
    key: "tls.cert_file",
    message:
      "Cannot serve TLS as 'tls.cert_file' is given and 'tls.key_file' is not: give both or none ('tls.cert_file' is from HOLDFAST__TLS__CERT_FILE)",
  }]);
});

Deno.test("no rule speaks while a value is refused, since it would tell of a mistake that nobody made", () => {
  const input = inputOf({
    set: { "deploy_api.enabled": "true", "tls.cert_file": "a", "log.level": "x" },
  });
  const { problems } = readConfig({ ...input, purpose: servicePurpose });
  assert.deepEqual(problems.map(({ key }) => key), ["log.level"]);
});

Deno.test("any YAML text gives a configuration or problems, and never an error", () => {
  const piece = fc.constantFrom(
    "tls",
    ":",
    " ",
    "\n",
    "{",
    "}",
    "[",
    "]",
    "-",
    "&a",
    "*a",
    "'",
    '"',
    "#",
    "!x",
    "profile",
    "1",
  );
  fc.assert(
    fc.property(fc.oneof(fc.string(), fc.array(piece).map((all) => all.join(""))), (text) => {
      const { problems } = readConfig(inputOf({ files: { "holdfast.yaml": text } }));
      for (const { message } of problems) assert(!message.includes("\n"), message);
    }),
  );
});
