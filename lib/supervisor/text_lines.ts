/** Cuts a stream of text into its lines, without their ends. What follows the last line end is no line. */
export class TextLines extends TransformStream<string, string> {
  constructor() {
    let rest = "";
    super({
      transform(chunk, controller) {
        const lines = (rest + chunk).split("\n");
        rest = lines.pop() ?? "";
        for (const line of lines) controller.enqueue(line);
      },
    });
  }
}
