import '../planted.ts';
import '../../planted.ts';
import '../../../model/planted.ts';
import '#gateway/planted';
