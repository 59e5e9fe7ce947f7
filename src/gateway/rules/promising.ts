import type { Generate } from '#core/generate';
import { withoutPassthrough } from '#core/passthrough';
import { isConversation, type RoutedCall } from '#core/routed-call';
import { unpromised } from '#core/unpromised';

/**
 * Marks the answers of models that are known not to keep to JSON schemas, where the call has one. They are decoded, so that they can be validated: see
 * `conforming`.
 */
export function promising(inner: Generate<RoutedCall>): Generate<RoutedCall> {
  return (call, context) => {
    if (!isConversation(call) || call.output.type !== 'schema') return inner(call, context);
    const { abilities } = call.route;
    return !abilities || abilities.includes('json-schema') ? inner(call, context) : unpromised(inner(withoutPassthrough(call), context));
  };
}
