/**
 * The settings that an operator changes while the application runs: the key `settings.json` of a ConfigMap.
 *
 * @module
 */

import type { ConfigMapStore } from "@holdfast/holdfast";
import { z } from "zod";

/** The ConfigMap. */
export const SETTINGS_MAP = "example-settings";

/** The key in it. */
export const SETTINGS_KEY = "settings.json";

const SettingsSchema = z.object({
  greeting: z.string().default("hello"),
  pauseMs: z.number().int().min(1).max(60_000).default(200),
});

/** The settings. */
export type Settings = z.output<typeof SettingsSchema>;

/** What holds without a ConfigMap. */
export const DEFAULT_SETTINGS: Settings = SettingsSchema.parse({});

/**
 * Reads the settings as they are now.
 *
 * @throws {ConfigMapDecodeError} They are no JSON, or of another form.
 */
export async function readSettings(maps: ConfigMapStore | null | undefined): Promise<Settings> {
  return await maps?.read(SETTINGS_MAP, SETTINGS_KEY, SettingsSchema) ?? DEFAULT_SETTINGS;
}
