/**
 * What tests read from a Dockerfile: its instructions, and what is wrong with an image of ours.
 *
 * @module
 */

/** One instruction, its continued lines joined. */
export interface Instruction {
  /** In capitals. */
  readonly name: string;
  readonly text: string;
}

/** The instructions of a Dockerfile. */
export function instructionsIn(text: string): Instruction[] {
  const lines = text.split("\n").filter((line) => !/^\s*(#|$)/.test(line)).join("\n");
  return lines.replaceAll(/\\\n\s*/g, "").split("\n").map((line) => {
    const [, name = "", rest = ""] = /^\s*(\S+)\s*(.*)$/.exec(line) ?? [];
    return { name: name.toUpperCase(), text: rest.trim() };
  });
}

const PINNED = /^(?:--platform=\S+ )?[a-z0-9./-]+:[\w.-]+@sha256:[0-9a-f]{64}(?: AS \w+)?$/;
const EXEC_FORM = new Set(["RUN", "CMD", "ENTRYPOINT"]);

/** What is wrong with a Dockerfile, by the rules of docs/adr/0179. */
export function dockerfileFaults(text: string): string[] {
  const instructions = instructionsIn(text);
  const starts = instructions.flatMap(({ name }, at) => name === "FROM" ? [at] : []);
  const last = instructions.slice(starts.at(-1) ?? 0);
  const user = last.findLast(({ name }) => name === "USER")?.text;
  return [
    ...instructions.flatMap(({ name, text }) => {
      if (name === "HEALTHCHECK") return ["it has a HEALTHCHECK, and Kubernetes has probes"];
      if (name === "VOLUME") return [`it asks for a volume: ${text}`];
      if (name === "SHELL" || name === "ADD") return [`it uses ${name}`];
      if (name === "FROM" && !PINNED.test(text)) return [`an image is not pinned: ${text}`];
      if (name === "COPY" && /^(--\S+ )*\.? /.test(`${text} `)) return [`it copies all: ${text}`];
      return EXEC_FORM.has(name) && !isList(text) ? [`${name} starts a shell: ${text}`] : [];
    }),
    ...(starts.length < 2 ? ["it has no stage that builds"] : []),
    ...(last.some(({ name }) => name === "RUN") ? ["the image itself runs something"] : []),
    ...(user === "65534:65534" ? [] : [`its user is ${user ?? "that of the base image"}`]),
  ];
}

function isList(text: string): boolean {
  try {
    const list: unknown = JSON.parse(text);
    return Array.isArray(list) && list.every((word) => typeof word === "string");
  } catch {
    return false;
  }
}
