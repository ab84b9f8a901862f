/**
 * Where reports are shown: a terminal, a pipe, or a program that reads JSON.
 *
 * @module
 */

import { renderLines } from "../../../lib/status/lines.ts";
import { newsOf, type StatusReport } from "../../../lib/status/report.ts";
import { renderTable } from "../../../lib/status/table.ts";
import type { TextOutput } from "../system.ts";

/** The terminal's own words (ECMA-48): to the first place, to the end of the line, to the end of the screen. */
const HOME = "\x1b[H";
const CLEAR_LINE = "\x1b[K";
const CLEAR_REST = "\x1b[J";
const CLEAR_ALL = "\x1b[2J";

/** Shows reports. */
export class Screen {
  readonly #output: TextOutput;
  readonly #json: boolean;
  #news: string | null = null;

  constructor(output: TextOutput, { json }: { readonly json: boolean }) {
    this.#output = output;
    this.#json = json;
  }

  /** Shows the only report. */
  once(report: StatusReport): void {
    this.#output.write(
      this.#json
        ? `${JSON.stringify(report, null, 2)}\n`
        : this.#output.isTerminal
        ? renderTable(report)
        : renderLines(report),
    );
  }

  /**
   * Shows one of many reports. A terminal shows each, so that its times run; a pipe gets those that bring news, under
   * their time; as JSON, each is one line.
   */
  next(report: StatusReport): void {
    const news = newsOf(report);
    const first = this.#news === null;
    if (!this.#json && this.#output.isTerminal) {
      this.#draw(report, first);
    } else if (news !== this.#news) {
      this.#output.write(
        this.#json
          ? `${JSON.stringify(report)}\n`
          : `${first ? "" : "\n"}at ${report.at}\n${renderLines(report)}`,
      );
    }
    this.#news = news;
  }

  #draw(report: StatusReport, first: boolean): void {
    const text = `${renderTable(report)}\n${report.at}   Ctrl+C ends it\n`;
    const lines = text.replaceAll("\n", `${CLEAR_LINE}\n`);
    this.#output.write(`${first ? CLEAR_ALL : ""}${HOME}${lines}${CLEAR_REST}`);
  }
}
