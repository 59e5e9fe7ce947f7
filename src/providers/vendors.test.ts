import { expect, test } from 'vitest';
import { vendorOf } from './vendors.ts';

test.each([
  ['https://api.openai.com/v1', 'openai'],
  ['https://eu.api.openai.com/v1', 'openai'],
  ['https://my.openai.azure.com', 'azure'],
  ['https://API.Anthropic.com', 'anthropic'],
  ['https://generativelanguage.googleapis.com/v1beta', 'google'],
  ['https://{region}-aiplatform.googleapis.com', 'vertex'],
  ['https://aiplatform.eu.rep.googleapis.com/v1', 'vertex'],
  ['https://openrouter.ai/api/v1', 'openrouter'],
  ['https://api.openai.com.example.org/v1', undefined],
  ['https://notapi.openai.com/v1', undefined],
  ['http://127.0.0.1:11434/v1', undefined],
])('the vendor at %s is %s', (address, vendor) => {
  expect(vendorOf(address)).toBe(vendor);
});
