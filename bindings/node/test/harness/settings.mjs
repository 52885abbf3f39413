import { SettingsProvider } from '@deepseek-ai/dsh-settings'

/** A settings provider whose document is an object: `publish` is what a change of the user's file does. */
export class MemorySettings extends SettingsProvider {
  writable = true

  constructor(ctx, { document = {} } = {}) {
    super(ctx)
    this.stored = document
  }

  async load() {
    return structuredClone(this.stored)
  }

  async persist(ns, section) {
    this.stored[ns] = structuredClone(section)
  }

  changeOutside(document) {
    this.publish(structuredClone(document))
  }
}
