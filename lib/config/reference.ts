/**
 * Writes the reference page of the configuration from the schema, so that the page cannot fall behind.
 *
 * @module
 */
import {
  DEPLOY_API_VARIABLE,
  HOST_VARIABLE,
  KUBERNETES_PREFIX,
  PORT_VARIABLE,
  SIMPLE_VARIABLES,
} from "./compatibility.ts";
import { environmentNames } from "./env_names.ts";
import { FOLDER_VARIABLE } from "./files.ts";
import type { RawValue } from "./keys.ts";
import { HOLDFAST_PREFIX } from "./layers.ts";
import { DOTENV_VARIABLE, PROFILE_VARIABLES } from "./profile.ts";
import { configKeys, serviceDefaults } from "./schema.ts";

const code = (text: string) => `\`${text}\``;

function showValue(value: RawValue): string {
  if (value === "") return "empty";
  if (typeof value === "object") return value.length === 0 ? "empty" : code(value.join(","));
  return code(String(value));
}

function showDefault(key: string, fallback: RawValue): string {
  const service = serviceDefaults[key];
  return service === undefined
    ? showValue(fallback)
    : `${showValue(fallback)}, in ${code("serve")} ${showValue(service)}`;
}

/** The longest line of a paragraph, as `deno fmt` wants it. */
const LINE_WIDTH = 100;

/** A paragraph. A piece of code in it is never broken. */
function paragraph(text: string): string {
  const lines: string[] = [];
  let line = "";
  for (const word of text.match(/(?:`[^`]*`|\S)+/g) ?? []) {
    const longer = line === "" ? word : `${line} ${word}`;
    if ([...longer].length <= LINE_WIDTH) {
      line = longer;
      continue;
    }
    lines.push(line);
    line = word;
  }
  return [...lines, line].join("\n");
}

/** A table, padded as `deno fmt` wants it. */
function table(header: readonly string[], rows: readonly (readonly string[])[]): string {
  const cells = [header, ...rows].map((row) => row.map((cell) => cell.replaceAll("|", "\\|")));
  const widths = header.map((_, column) =>
    Math.max(3, ...cells.map((row) => [...(row[column] ?? "")].length))
  );
  const line = (row: readonly string[], fill: string) =>
    `| ${widths.map((width, column) => (row[column] ?? "").padEnd(width, fill)).join(" | ")} |`;
  const [head = [], ...body] = cells;
  return [line(head, " "), line(head.map(() => ""), "-"), ...body.map((row) => line(row, " "))]
    .join("\n");
}

function keyTables(): readonly string[] {
  return [...configKeys.sections.keys()].flatMap((section) => {
    const own = [...configKeys.keys].filter(([key]) =>
      key.slice(0, Math.max(0, key.lastIndexOf("."))) === section
    );
    if (own.length === 0) return [];
    const rows = own.map(([key, { description, expects, fallback }]) => [
      code(key.slice(section.length + 1)),
      showDefault(key, fallback),
      expects,
      description,
    ]);
    return [`### ${code(section)}`, table(["Key", "Default", "Takes", "Meaning"], rows)];
  });
}

function compatibilityTable(): string {
  const rows = [
    [code(`${KUBERNETES_PREFIX}X`), code("kubernetes.x")],
    ...Object.entries(SIMPLE_VARIABLES).map(([name, key]) => [code(name), code(key)]),
    [
      code(DEPLOY_API_VARIABLE),
      `${code("deploy_api.enabled")}: ${code("true")} in any case is on, all else is off`,
    ],
    [code(HOST_VARIABLE), `the host of ${code("host.listen")}`],
    [code(PORT_VARIABLE), `the port of ${code("host.listen")}`],
  ];
  return table(["Variable", "Sets"], rows);
}

function environmentTable(): string {
  return table(
    ["Variable", "Read for"],
    environmentNames.map(({ name, purpose }) => [code(name), purpose]),
  );
}

const EXAMPLE = `\`\`\`yaml
# holdfast.yaml
deploy_api:
  enabled: true
tls:
  cert_file: /etc/holdfast/tls/tls.crt
  key_file: /etc/holdfast/tls/tls.key
profile:
  dev:
    log:
      level: debug
\`\`\``;

const LAYERS = [
  "The defaults of this page.",
  "`holdfast.yaml`.",
  "The section of the selected profile in `holdfast.yaml`: `profile: { NAME: { … } }`.",
  "`holdfast-NAME.yaml`, the file of the selected profile.",
  "`.env` files.",
  "The variables of the reference programs, see below.",
  `\`${HOLDFAST_PREFIX}…\` variables.`,
  "Options of the command line: `--set KEY=VALUE` for any key, and `--leader-elect`.",
];

const TYPES = [
  "A switch takes `true`, `1`, `yes`, `on` and `false`, `0`, `no`, `off`, in any case.",
  "A whole number takes digits.",
  "A list is split at commas. Spaces around an item and empty items are dropped.",
  "A text is kept exactly.",
];

/** The page, in Markdown. */
export function renderReference(): string {
  const blocks = [
    "# Configuration",
    "<!-- Written by `holdfast config --reference` from lib/config. Do not edit it by hand. -->",
    paragraph("`holdfast config` shows the effective value of every key and where it came from."),
    EXAMPLE,
    "## Layers",
    paragraph(
      "A higher layer wins. Sections are merged key by key. Any other value replaces the one below it. " +
        "From low to high:",
    ),
    LAYERS.map((layer, index) => `${index + 1}. ${layer}`).join("\n"),
    paragraph(
      "An unknown key is an error in every layer. So is a value of the wrong type, even where a higher " +
        "layer would hide it. All errors are told at once, and a bad configuration starts nothing.",
    ),
    paragraph(
      "No key holds a secret. Keys, certificates and tokens are in files, and the configuration has " +
        "their paths.",
    ),
    "### Files",
    paragraph(
      `\`${FOLDER_VARIABLE}\` names the folder of the files. Without it, the folder is the working ` +
        "directory. A YAML file that is not in that folder is read from the working directory.",
    ),
    "### Profiles",
    paragraph(
      `${PROFILE_VARIABLES.map(code).join(", then ")}, then \`--profile\` selects the profile. ` +
        "`default` means none. `production` and `prod` are one profile, and so are `development` and " +
        "`dev`. In `holdfast.yaml` the short name wins. Of the profile's own files, the first that " +
        "exists is read, and the spelling that you chose comes first.",
    ),
    "### .env files",
    paragraph(
      `They are read in the profiles \`dev\` and \`test\`. \`${DOTENV_VARIABLE}=1\` turns them on in ` +
        `every profile and \`${DOTENV_VARIABLE}=0\` turns them off. The order is \`.env\`, ` +
        "`.env.local`, `.env.NAME`, `.env.NAME.local`. The first file that sets a variable wins, and " +
        "the environment of the process wins over them all. They set keys of the configuration only. " +
        "`$` has no meaning in a value.",
    ),
    "### Variables",
    paragraph(
      "The parts of a key are joined by two underscores: " +
        `\`${HOLDFAST_PREFIX}DEPLOY_API__ENABLED=true\` sets \`deploy_api.enabled\`. The type of the ` +
        "key says how the text is read:",
    ),
    TYPES.map((type) => `- ${type}`).join("\n"),
    paragraph("These names of the reference programs work too. An empty one sets nothing."),
    compatibilityTable(),
    "## Keys",
    paragraph(
      "A duration is one or more numbers, each with a unit: `h`, `m`, `s`, `ms`. An address without a " +
        "host means every interface, and port 0 means any free port.",
    ),
    ...keyTables(),
    "## Environment",
    paragraph(
      "The program can read these variables and no others. `deno.json` grants exactly this list.",
    ),
    environmentTable(),
  ];
  return `${blocks.join("\n\n")}\n`;
}
